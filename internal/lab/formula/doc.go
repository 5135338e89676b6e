// Package formula is the language of expectations about an experiment's results. Formulas have
// numbers with units, metrics, swept variables, and functions from theory.
//
//	utilisation(cubic) > utilisation(reno) > utilisation(tahoe)
//	rtt.max <= path.rtt + 8 * path.queue / path.rate
//	utilisation = reno_utilisation(path.buffer) ± 1%
//	goodput[0] / goodput["late"] < 1.1
//
// A metric is one of internal/lab/result's catalog. A dot may replace an underscore in its name,
// and rtt, queue and cwnd stand for rtt_mean, queue_mean and cwnd_mean. The name can end with
// .mean, .median, .min, .max or .sd, a statistic over the trials; the default is the mean. A flow
// may follow in brackets, by index or name, and another cell in parentheses: the values of the
// swept variables in which that cell differs from the current one. If a metric and a swept variable
// have the same name, the name means the metric.
//
// Numbers with units are converted to seconds, bit/s and bytes, the units of metrics, and a
// percentage to a number from 0 to 1. Values of different units cannot be compared or added.
//
// scan.go reads characters, parse.go and refer.go parse expressions, claim.go parses comparisons,
// eval.go evaluates them, unit.go has the units. function.go has the functions of mathematics,
// theory.go reads the functions of theory.txt.
package formula
