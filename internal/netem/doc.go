// Package netem emulates a link: it delays, queues, drops, duplicates, corrupts, truncates and
// reorders packets, and limits their rate. It does no I/O and reads no clock, so simulations in
// virtual time and the links of a real node use the same code.
//
// A Link is one direction. Input passes a packet through, in this order,
//
//	policer   drops or marks packets above the agreed rate                (policer.go)
//	queue     holds packets while the server is busy; unused without rate (queue.go)
//	server    sends the bytes at the link's rate                          (rate.go)
//	faults    loss, duplication, corruption, truncation                   (loss.go, corrupt.go)
//	wire      delay, jitter, reordering                                   (delay.go)
//
// until Output returns it at the other end. So a lost packet has used the link, like a packet that
// is lost in the middle of a path. A Config has a description of each part, from which New makes
// the part. To add a queue, a loss model or a rate, add a file with a new description.
//
// trace.go and trace_*.go read, write and generate mahimahi's traces.
//
// Input copies the packet; the result of Output is valid until the next Input or Advance.
// Deadline returns when Advance is due. A Link does not allocate in its steady state.
package netem
