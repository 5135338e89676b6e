// Package result has the results of experiments: the metrics of runs, and the time series of a
// single run, from which figures are drawn.
//
// metric.go is the catalog of metrics, which tables, files, formulas and figures use. trial.go has
// the metrics of a run, group.go those of a cell's runs, with their statistics in stat.go,
// paired.go and steady.go. record.go has the time series, log.go reads and writes those of links as
// mahimahi's logs.
package result
