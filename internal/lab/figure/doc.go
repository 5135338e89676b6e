// Package figure draws what was measured: of one run, of an experiment's cells, and of a transfer
// that a node's probe has followed.
//
// A record's way: Plots (plots.go) -> a view with what all figures need -> one file a figure. The
// cells' way: SweepPlots (sweep.go) -> groups (cells.go) -> curves, boxes, a scatter. Both go into
// a Report (report.go) and its tables (table.go). A probe file's way: ReadSamples (sample.go) ->
// Connection -> Figure (transfer.go). All is drawn by internal/lab/chart.
package figure
