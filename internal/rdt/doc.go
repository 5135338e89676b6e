// Package rdt is a reliable data transfer over UDP, the one of founding document 003: a
// sender gives many objects to a receiver over one flow of datagrams, by selective
// repeat with cumulative acknowledgments, and with no congestion control at all.
//
// Both ends are engines with the four verbs of docs/ARCHITECTURE.md. A Receiver asks
// for objects by number and tells when each is complete; a Sender cuts them into
// chunks, one a packet, and repeats what is lost. What the document does is the zero
// Config: 1325 bytes a packet, a window of 1120 packets, a time-out of one second for
// each, the third duplicate acknowledgment resends the first packet of the window, and
// an object ends with an empty packet. What goes further has a field of its own:
// acknowledgments that name the packet they answer (Selective), a time-out that follows
// the round trips (Adaptive), a cheaper checksum, compression, and objects that take
// turns (Interleave).
//
// packet.go is the codec and digest.go its checksums; schedule.go says which chunk is
// next, flight.go holds what is not acknowledged yet, timeout.go how long to wait;
// sender.go, acknowledge.go, receiver.go and object.go are the engines.
//
// A flow is a pair of UDP ports. Whoever owns the engines gives each flow a pair that
// was not used lately, for nothing in a packet tells one flow from another that had the
// same ports, but the sequence number that a receiver chose to begin with.
package rdt
