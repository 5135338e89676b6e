// Package result has the results of experiments: the metrics of runs, and the time series of a
// single run, from which figures are drawn.
//
// metric.go is the catalog of metrics, which tables, files, formulas and figures use. trial.go has
// the metrics of a run, and trials.go reads and writes them. group.go summarizes the runs of a
// cell; stat.go, paired.go and steady.go have the statistics. record.go has the time series,
// columns.go and table.go their tables. log.go reads and writes a link's events as a log of
// mahimahi, xplot.go writes time-sequence graphs.
package result
