// Package tcp is the Transmission Control Protocol of RFC 9293 as a pure
// engine: it reads no clock, opens no socket and starts no goroutine. A Host
// holds every listener and connection of one host and has the four verbs of
// every room: Input, Output, Deadline, Advance.
//
// A segment's way in:
//
//	demux.go       Host.Input finds the connection, TIME-WAIT or listener
//	input.go       SEGMENT ARRIVES, RFC 9293 §3.10.7.4, one function a step
//	  timestamp.go PAWS before its first step, the stamp to echo after its fifth
//	  challenge.go what segments that may be forged draw
//	input_syn.go   the same for LISTEN and SYN-SENT
//	  cookie.go    a SYN answered and forgotten
//	timewait.go    the same for TIME-WAIT
//	ack.go         the fifth step: what was delivered, and what follows from it
//	  recovery.go  what was lost, by the records of what was sent: sent.go sack.go rack.go frto.go
//	               undo.go, with gbn.go newreno.go nextseg.go for peers and hosts without RACK
//	  episode.go   how a recovery begins and ends, for the congestion controller too
//	  rtt.go tlp.go congestion/
//	  ecn.go       what marks and their echoes mean
//	receiver.go    is the segment acceptable, and the sixth to the eighth: urgent, data, FIN
//	  reassembly.go out of order: what is held, and the SACK blocks that report it
//	  delack.go    when to acknowledge
//
// and a byte's way out:
//
//	user.go        Wrote, Close, ...: the user calls of §3.10
//	output.go      Host.Output takes turns; a connection fills one train
//	sender.go      what the peer's window and Nagle let us send
//	window.go      probes of a window that is shut
//	sent.go        one record for each segment in flight
//	timer.go       what is due when nothing arrives
//
// Inside, sequence numbers are 64 bits wide (seq.go) and payload lives once, in
// the rings of internal/buffer: a segment in flight is 64 bytes about it, and
// an out-of-order segment is an interval.
package tcp
