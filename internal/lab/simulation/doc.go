// Package simulation runs one cell of an experiment once, in virtual time, and measures its flows.
//
// Run builds a dumbbell of hosts and links from the plan, runs its flows, and returns metrics of
// internal/lab/result and, if requested, the time series for figures.
//
//	left 1 ──┐                                           ┌── right 1
//	left 2 ──┤ router left ══ bottleneck ══ router right ├── right 2
//	left n ──┘                                           └── right n
//
// play.go runs a trial, dumbbell.go builds the topology, and flow.go runs one flow. source.go and
// request.go are the applications, document_app.go attaches those of founding documents. record.go
// makes the time series, and metrics.go the metrics.
//
// address.go, packet.go, meter.go, path.go, capacity.go, sender_stats.go and recorder.go measure at
// the bottleneck and at a sender. They do not depend on virtual time: internal/lab/emulation uses
// them, too.
//
// The i-th trials of all cells of an experiment have the same seed, and each component has its own
// random stream. So two cells that differ in an algorithm have the same random losses.
package simulation
