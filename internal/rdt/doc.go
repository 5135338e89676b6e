// Package rdt is the reliable data transfer over UDP of founding document 003: a sender transfers
// many objects to a receiver in one flow of datagrams, with selective repeat, cumulative
// acknowledgments, and no congestion control.
//
// Both ends are engines with the four verbs of docs/ARCHITECTURE.md. A Receiver requests objects by
// number and returns each when it is complete. A Sender splits them into chunks, one in each
// packet, and retransmits lost packets. The zero Config is the document's protocol: 1325 bytes in a
// packet, a window of 1120 packets, a timeout of one second for each, retransmission of the
// window's first packet at the third duplicate acknowledgment, and an empty packet at the end of an
// object. Extensions have their own fields: acknowledgments that name the received packet
// (Selective), a timeout from the round trips (Adaptive), a cheaper checksum, compression, and
// interleaved objects (Interleave).
//
// packet.go is the codec and digest.go its checksums; schedule.go chooses the next chunk, flight.go
// holds the unacknowledged packets, timeout.go is the timeout; sender.go, acknowledge.go,
// receiver.go and object.go are the engines.
//
// A flow is a pair of UDP ports. The owner of the engines must not reuse a pair too early: packets
// have no other identification of their flow than the sequence number with which the receiver has
// started.
package rdt
