// Package rdt implements the reliable data transfer over UDP of founding document 003. A sender
// transfers many objects to a receiver in one flow of datagrams, with selective repeat, cumulative
// acknowledgments, and no congestion control.
//
// Both ends are engines with the four verbs of docs/ARCHITECTURE.md. A Receiver requests objects by
// number and returns each when it is complete. A Sender splits them into chunks, one for each
// packet, and retransmits lost packets. The zero Config is the document's protocol: 1325 bytes in a
// packet, a window of 1120 packets, a timeout of one second for each packet, retransmission of the
// window's first packet at the third duplicate acknowledgment, and an empty packet at the end of an
// object. Extensions have their own fields: acknowledgments that identify the received packet
// (Selective), a timeout from round-trip times (Adaptive), a faster checksum, compression, and
// interleaved objects (Interleave).
//
// packet.go contains the codec and digest.go its checksums. schedule.go chooses the next chunk,
// flight.go holds the unacknowledged packets, and timeout.go computes the timeout. sender.go,
// acknowledge.go, receiver.go and object.go are the engines.
//
// A pair of UDP ports identifies a flow. The owner of the engines must not reuse a pair too early.
// Otherwise only the receiver's initial sequence number distinguishes the packets of two flows.
package rdt
