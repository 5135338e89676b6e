// Package emulation runs one cell of an experiment once, in real time: processes of this machine
// speak over UDP sockets, and one more in their middle does to packets what the path does.
//
//	sender 1 ──┐                            ┌── receiver 1
//	sender 2 ──┤ middle: netem, by the clock ├── receiver 2
//	sender n ──┘                            └── receiver n
//
// Each end is a process with a node, as `node run` has it. The middle has the links of
// internal/lab/simulation, with the same models and the same seeds, so that the n-th packet is lost
// in real time, too, if it is in virtual time. What differs is what is to be seen: the machine.
//
// run.go is a run from its beginning to its end, child.go a process of it, merge.go what all of
// them have come to. middle.go is the process in the middle, wires.go its links. end.go is the
// process of an end, watch.go what it measures, and arm_*.go what ends do, by protocol. message.go
// is how processes speak with whom has started them, lateness.go how late they were, able.go what
// can be played at all.
//
// # An arm
//
// A process that is an end of a flow is told what to do by lines of JSON on its standard input,
// and answers by lines of JSON on its standard output; the last line that it writes to its standard
// error is told if it fails. Any program may be one: see Options.Programs. It is started without
// arguments and hears, in this order,
//
//	{"type":"start", …}   a Start: who it is, where it is, what it is to do
//	{"type":"go","at":T}  the run begins at T, in nanoseconds since 1970: all times count from it
//	{"type":"stop"}       the run is over
//
// and when its input ends, it is to end at once, whatever it does. It says
//
//	{"type":"ready"}                                      its sockets are open
//	{"type":"over"}                                       it has nothing more to do
//	{"type":"rows","table":"samples","csv":"…"}           rows of a record, before done; tables
//	                                                      are samples, segments and progress
//	{"type":"log","text":"…"}                             a line for whoever watches
//	{"type":"done","finished":true,"values":{…}, …}       a Done: what it came to, after stop
//	{"type":"error","text":"…"}                           it cannot go on
//
// Its packets are IP packets, each in a datagram from Start.Local to Start.Remote; Start.LNX says
// the same for a node. The dialing end begins at Start.Begin seconds, and neither goes on after
// Start.Stop or Start.Duration. Rows are CSV below a line of names, those of the files that a
// directory of results has: of flows/*.csv for samples, of flows/*-progress.csv for progress, and
// so on, as many of the columns as the program knows. Values are named as `node lab metrics` has
// them.
//
// A program in Go has less to do: Serve speaks all of that, opens a node, measures lateness, and
// calls an Arm, which has the flow and the node and takes note of what arrives.
package emulation
