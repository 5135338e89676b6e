// Package script lets a Starlark file be a congestion control algorithm: an experiment
// needs no compiler, and the interpreter stays out of package tcp.
//
//	def init(state, conn):              # once a connection, before anything is sent
//	def on_ack(state, ack):             # must be there: the window grows
//	def on_loss(state, loss):           # must be there: the window shrinks
//	def on_exit(state, exit):           # a loss episode is over, or was a mistake
//	def on_restart(state, restart):     # data leaves after a silence
//	def on_segment_lost(state, segment) # one segment is thought lost
//
// A function sets state.cwnd, state.ssthresh and state.pacing_rate, or returns the window or
// a pair of window and pacing rate. What else an algorithm remembers are attributes of state
// that its init has made. Windows are bytes, rates bytes a second, times seconds.
//
// What the events tell is what package congestion tells, name by name; event.go and conn.go
// have the lists. A measurement that there is none of (rtt, min_rtt, srtt, rate) is None.
//
// Where a script has no on_exit and no on_restart, but a threshold, the house does what its
// own loss-based algorithms do: see window.go.
//
// A script is as deterministic as the rest. Starlark has no clock, no random numbers and no
// order that depends on addresses; random() draws from the connection's seed, and the
// functions of math that Go computes differently on different processors are arith.go's.
// A file, its values and each of its calls have bounds: limit.go.
package script
