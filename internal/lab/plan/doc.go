// Package plan reads experiment files: strict YAML documents with units in their values. Each
// error is shown at its place in the file.
//
// A File is the document. Set and Sweep change it, and Cells returns its cells: an Experiment for
// each point of the cross product of the swept variables.
//
// file.go has the File, document.go its YAML nodes with their places, error.go the errors.
// decode.go and unit.go read words, numbers and quantities. The other files have tables of keys
// with the fields that they set: read.go the experiment's; path.go, queue.go, loss.go, jitter.go,
// fault.go, schedule.go and trace.go the path's; mahimahi.go a command line's instead; flow.go,
// tcp.go, script.go and founding.go the flows'; expect.go the expectations'. sweep.go and key.go
// read swept variables. resolve.go and format.go write a File. A test compares
// docs/EXPERIMENTS.md with these tables.
package plan
