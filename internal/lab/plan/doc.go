// Package plan reads experiment files: one strict YAML document each, with units in its
// values, in which every mistake is shown where it is.
//
// A File is the document as it was written. Set and Sweep change it, and Cells gives its
// cells: an Experiment for each point of the cross product of what is swept.
//
// file.go has the File, document.go its YAML as nodes with places, error.go mistakes. decode.go
// and unit.go read keys, words and quantities by tables, of which each other file has some:
// read.go the experiment's, path.go, queue.go, loss.go, jitter.go, fault.go, schedule.go and
// trace.go the path's, mahimahi.go those of a command line in its place, flow.go, tcp.go,
// script.go and founding.go the flows', sweep.go, key.go and expect.go the rest; resolve.go and
// format.go write a File again. docs/EXPERIMENTS.md is the reference: a test holds it to these
// tables.
package plan
