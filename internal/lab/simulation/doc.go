// Package simulation runs one cell of an experiment once, in virtual time, and measures its flows.
//
// Run builds a dumbbell of hosts and wires as the plan has it, lets its flows speak over it, and
// returns what it came to: numbers by the names of internal/lab/result and, if they are asked
// for, the records that figures are drawn from.
//
//	left 1 ──┐                                  ┌── right 1
//	left 2 ──┤ router left ══ bottleneck ══ router right ├── right 2
//	left n ──┘                                  └── right n
//
// play.go is the run from beginning to end, dumbbell.go its world, flow.go one flow, source.go,
// sink.go and request.go the applications, guest.go those of founding documents, record.go what
// figures are drawn from, metrics.go what it all comes to.
//
// address.go, parcel.go, meter.go, path.go, capacity.go, view.go and tape.go measure: at the
// bottleneck, and at a sender. They do not know what drives the path, so that
// internal/lab/emulation measures with them, too.
//
// The i-th trial of every cell of an experiment has one seed, and each component of the world a
// random stream by its own name. So two cells that differ in an algorithm meet the same luck.
package simulation
