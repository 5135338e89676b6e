// Package plan reads experiment files: one strict YAML document each, with units in its
// values, in which every mistake is shown where it is.
//
// A File is the document as it was written. Set and Sweep change it, and Cells gives its
// cells: an Experiment for each point of the cross product of what is swept.
package plan
