// Package drill runs scripts in the notation of packetdrill against one
// tcp.Host, in virtual time. A script is a list of events, each with a time: a
// system call that a program makes, a segment that arrives (<) or is to leave
// (>), a change of a setting, or a condition on TCP_INFO.
//
//	// RFC 9293 §3.5: the peer opens.
//	0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//	+0  bind(3, ..., ...) = 0
//	+0  listen(3, 1) = 0
//	+0  < S 0:0(0) win 32792 <mss 1000,nop,wscale 7>
//	+0  > S. 0:0(0) ack 1 <...>
//	+.1 < . 1:1(0) ack 1 win 257
//	+0  accept(3, ..., ...) = 4
//
// Lines have the meaning that packetdrill gives them on Linux: sequence numbers
// of the host count from its SYN and the peer's are literal; a window is the
// field on the wire; an outbound segment without options expects none, and
// <...> matches any; a call with an end time blocks (0.1...0.3); times have a
// tolerance of 4 ms; an expected segment longer than the MSS stands for several
// in a row. tcp_info counts in packets and microseconds.
//
// Three lines at the head are not packetdrill's: --recovery=sack (or gbn,
// newreno, rack), --pacing and --initial_window=4.
//
// These differ from packetdrill: options are compared by their values: their order and their
// padding are the implementation's. A segment that leaves and is in no line is
// an error, at the end of the script too. Of Python, which packetdrill runs,
// there are assertions. A shell command can be sysctl, or ip for the MTU; one
// that is about the machine below (ethtool, tc, a defaults.sh) does nothing.
// Inbound data carries a pattern instead of zeros, and the interpreter compares
// outbound and read data with it.
//
// The interpreter is compiled for tests only. Its files:
//
//	lex_test.go, parse*_test.go    a script's text into events, with errors FILE:LINE
//	run_test.go                    the events in order
//	world_test.go                  the host, its clock and its output
//	segment_test.go                inbound and outbound segments
//	calls*_test.go                 the system calls
//	sysctl_test.go                 settings by Linux's names
//	info_test.go, expr_test.go     %{ assert tcpi_snd_cwnd == 10 }%
//	scripts_test.go                runs the scripts of internal/tcp/testdata
package drill
