// Package tcp is the Transmission Control Protocol of RFC 9293 as a pure
// engine: it reads no clock, opens no socket and starts no goroutine. A Host
// holds every listener and connection of one host and has the four verbs of
// every engine: Input, Output, Deadline, Advance.
//
// Host.Input (input.go) finds the connection, and Conn.input is SEGMENT ARRIVES, one
// function for one or a few steps. Host.Output (ready.go) serves connections in turn, and
// Conn.output (output.go) fills one train.
//
// A Conn has three parts that know neither it nor each other: the receiver, the
// sender, and the recovery of package recovery, which is loss detection and congestion
// control. What one tells another passes through the Conn.
//
// Inside, sequence numbers are 64 bits wide (seq.go) and payload lives once, in
// the rings of internal/buffer: a segment in flight is 64 bytes about it, and
// an out-of-order segment is an interval.
package tcp
