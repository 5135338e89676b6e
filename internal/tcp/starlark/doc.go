// Package starlark lets a Starlark file be a congestion control algorithm: an experiment
// needs no compiler, and the interpreter stays out of package tcp.
//
//	def init(state, conn):              # once a connection, before anything is sent
//	def on_ack(state, ack):             # must be there: the window grows
//	def on_loss(state, loss):           # must be there: the window shrinks
//	def on_exit(state, exit):           # a loss episode is over, or was a mistake
//	def on_restart(state, restart):     # data leaves after a silence
//	def on_segment_lost(state, segment) # one segment is thought lost
//	def on_send(state, sent):           # data was sent
//	def on_timer(state, timer):         # the timer of set_timer expires
//
// A function sets state.cwnd, state.ssthresh and state.pacing_rate, or returns the window or
// a pair of window and pacing rate. An algorithm keeps its other variables as attributes of state,
// which init creates. Windows are bytes, rates bytes a second, times seconds.
//
// The events have the fields of package congestion's structs; event.go and conn.go list them. A
// measurement without a sample (rtt, min_rtt, srtt, rate) is None.
//
// param("beta", 0.5) declares a parameter that an experiment sets; record("alpha", x) passes a
// number on to the run's hooks; set_timer(s) sets the connection's only timer.
//
// Where a script has no on_exit and no on_restart, but a threshold, the house does what its
// own loss-based algorithms do: see window.go.
//
// A script is deterministic. Starlark has no clock, no random numbers and no
// order that depends on addresses; random() draws from the connection's seed, and the
// functions of math that Go computes differently on different processors are arith.go's.
// A file, its values and each of its calls have bounds: limit.go.
package starlark
