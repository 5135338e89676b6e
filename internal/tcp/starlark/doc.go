// Package starlark runs a Starlark file as a congestion control algorithm. Experiments can
// therefore define algorithms without a compiler, and package tcp does not contain the interpreter.
//
//	def init(state, conn):              # once per connection, before anything is sent
//	def on_ack(state, ack):             # required: grows the window
//	def on_loss(state, loss):           # required: shrinks the window
//	def on_exit(state, exit):           # a loss episode has ended, or was spurious
//	def on_restart(state, restart):     # data is sent after an idle period
//	def on_segment_lost(state, segment) # one segment was marked as lost
//	def on_send(state, sent):           # data was sent
//	def on_timer(state, timer):         # the timer of set_timer has expired
//
// A function sets state.cwnd, state.ssthresh and state.pacing_rate, or returns the window, or a
// pair of window and pacing rate. init creates other attributes of state for the algorithm's
// variables. Windows are in bytes, rates in bytes per second, and times in seconds.
//
// The events have the fields of package congestion's structs; event.go and conn.go list them. A
// measurement without a sample (rtt, min_rtt, srtt, rate) is None.
//
// param("beta", 0.5) declares a parameter that an experiment sets. record("alpha", x) passes a
// number to the run's hooks. set_timer(s) sets the connection's only timer.
//
// For a script without on_exit or on_restart that sets ssthresh, the package acts as the built-in
// loss-based algorithms do (window.go).
//
// A script is deterministic. Starlark has no clock, no random numbers, and no order that depends on
// addresses. random() uses the connection's seed. arith.go replaces the functions of math whose
// results differ between processors. The size of a file and of its values, and the steps of each
// call, are limited (limit.go).
package starlark
