// Package plan reads experiment files: one strict YAML document each, with units in its
// values, in which every mistake is shown where it is.
//
// A File is the document as it was written. Set and Sweep change it, and Cells gives its
// cells: an Experiment for each point of the cross product of what is swept.
//
// file.go has the File, document.go its YAML as nodes with places, error.go the errors. decode.go
// and unit.go have the readers of keys: of words, numbers and quantities. Each other file has
// tables of keys with the fields that they set: read.go the experiment's, path.go, queue.go,
// loss.go, jitter.go, fault.go, schedule.go and trace.go the path's, mahimahi.go a command line's
// in its place, flow.go, tcp.go, script.go and founding.go the flows', expect.go the expectations';
// sweep.go and key.go read what is swept. resolve.go and format.go write a File again. A test
// compares docs/EXPERIMENTS.md with these tables.
package plan
