// Package figure draws the measurements of one run, of an experiment's cells, or of a transfer that
// a node recorded.
//
// For a record, Plots (plots.go) makes a view with the data that all figures need; each figure has
// a file. For cells (cells.go), SweepPlots (sweep.go) draws curves, boxes and a scatter plot. A
// Report (report.go) has both, and tables (table.go). For a recorded transfer, ReadSamples
// (sample.go) returns samples, which Figure (transfers.go) draws. Package internal/lab/chart draws
// all of them.
package figure
