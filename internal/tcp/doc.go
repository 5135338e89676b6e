// Package tcp is the Transmission Control Protocol of RFC 9293 as a pure engine: it reads no clock,
// opens no socket and starts no goroutine. A Host holds the listeners and connections of one host
// and has the four verbs of every engine: Input, Output, Deadline, Advance.
//
// Host.Input (input.go) finds the connection, and Conn.input is SEGMENT ARRIVES, one function for
// one or a few steps. Host.Output (output.go) serves connections in turn, and Conn.output
// (output.go) fills one train.
//
// A Conn consists of a handshake, a receiver and a sender, which do not know it or each other; Conn
// passes values between them. The sender owns a recovery (package recovery: loss detection and
// congestion control) and a path MTU.
//
// Sequence numbers are 64 bits wide inside (seq.go). Payload is stored once, in the rings of
// internal/buffer: a segment in flight is a record of 64 bytes, and out-of-order data is an
// interval.
package tcp
