// Package result is what experiments come to: numbers of runs, by the names of a catalogue,
// and the records of one run that figures are drawn from.
//
// metric.go is the catalogue, trial.go the numbers of a run, group.go those of a cell's runs, with
// their statistics in stat.go, paired.go and steady.go, record.go what is seen of a run as it goes.
// Whoever adds a number adds it to the catalogue; tables, files, expectations and
// figures have it then.
package result
