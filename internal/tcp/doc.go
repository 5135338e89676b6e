// Package tcp implements the Transmission Control Protocol of RFC 9293 as a pure engine: it reads
// no clock, opens no socket and starts no goroutine. A Host contains the listeners and connections
// of one host and has the four methods of every engine: Input, Output, Deadline, Advance.
//
// Host.Input (input.go) finds the connection. Conn.input processes the segment in the steps of the
// RFC ("SEGMENT ARRIVES"), with one function for one or a few steps. Host.Output (output.go) serves
// the connections in turn. Conn.output (output.go) fills one train.
//
// A Conn consists of a handshake, a receiver and a sender. These three do not refer to the Conn or
// to each other: the Conn passes values between them. The sender owns a recovery (package recovery:
// loss detection and congestion control) and a path MTU.
//
// Sequence numbers have 64 bits internally (seq.go). Payload is stored once, in the rings of
// internal/buffer. A segment in flight is a record of 64 bytes, and out-of-order data is an
// interval.
package tcp
