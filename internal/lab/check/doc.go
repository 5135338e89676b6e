// Package check holds what an experiment expects against what its runs came to.
//
// check.go goes through expectations and cells, cell.go gives formulas the numbers of the runs,
// text.go writes the verdicts for people.
package check
