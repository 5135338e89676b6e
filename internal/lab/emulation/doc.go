// Package emulation runs one cell of an experiment once, in real time. Processes on this machine
// exchange packets over UDP sockets, and one process, the middle, emulates the path between them.
//
//	sender 1 ──┐                            ┌── receiver 1
//	sender 2 ──┤ middle: netem in real time ├── receiver 2
//	sender n ──┘                            └── receiver n
//
// Each end is a process with a node, like `node run`. The middle has the links of
// internal/lab/simulation with the same models and seeds. So if the n-th packet is lost in virtual
// time, it is lost in real time, too. The remaining differences are due to the machine.
//
// run.go runs an experiment, child.go starts a process, merge.go combines the results. middle.go is
// the process in the middle, dumbbell.go its links. end.go is the process of an end,
// measurements.go its measurements, and arm_*.go the protocols. message.go has the messages between
// processes, lateness.go measures delays that the machine causes, supported.go checks whether an
// experiment can run in real time.
//
// # An arm
//
// The process of an end reads lines of JSON from its standard input and writes lines of JSON to its
// standard output. If it fails, the last line of its standard error is reported. It may be any
// program: see Options.Programs. It is started without arguments and reads, in this order,
//
//	{"type":"start", …}   a Start: its identity, its addresses and its task
//	{"type":"go","at":T}  the run begins at T, in nanoseconds since 1970: all times count from it
//	{"type":"stop"}       the run is over
//
// It must exit immediately when its input ends. It writes
//
//	{"type":"ready"}                                      its sockets are open
//	{"type":"over"}                                       it has finished its task
//	{"type":"rows","table":"samples","csv":"…"}           rows of a record, before done; tables
//	                                                      are samples, segments and progress
//	{"type":"log","text":"…"}                             a line for the user
//	{"type":"done","finished":true,"values":{…}, …}       a Done: its results, after stop
//	{"type":"error","text":"…"}                           it has to give up
//
// Its packets are IP packets, each in a datagram from Start.Local to Start.Remote; Start.LNX
// configures a node the same way. The client begins at Start.Begin seconds, and both ends stop at
// Start.Stop or Start.Duration. Rows are CSV below a header line, with any of the columns of the
// files in a directory of results: flows/*.csv for samples, flows/*-progress.csv for progress, and
// so on. `node lab metrics` lists the names of values.
//
// A program in Go only needs to call Serve. Serve handles all messages, opens a node, measures
// lateness, and calls an Arm with the flow and the node.
package emulation
