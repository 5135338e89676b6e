// Package plan reads experiment files: strict YAML documents with units in their values. Each error
// shows its position in the file.
//
// A File is the document. Set and Sweep change it, and Cells returns its cells: an Experiment for
// each point of the cross product of the swept variables.
//
// file.go has the File, document.go its YAML nodes with their positions, error.go the errors.
// decode.go and unit.go read words, numbers and quantities. These files have tables of keys and of
// the fields that the keys set: read.go for the experiment; path.go, queue.go, loss.go,
// jitter.go, fault.go, schedule.go and trace.go for the path; mahimahi.go for mahimahi command
// lines; flow.go, tcp.go, script.go and founding.go for the flows; expect.go for the expectations.
// sweep.go and key.go read swept variables. resolve.go and format.go write a File. A test compares
// docs/EXPERIMENTS.md with these tables.
package plan
