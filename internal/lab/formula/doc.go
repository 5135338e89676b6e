// Package formula is the language of expectations: what the numbers of an experiment should be,
// in terms of numbers with units, of metrics, of what is swept, and of theory.
//
//	utilisation(cubic) > utilisation(reno) > utilisation(tahoe)
//	rtt.max <= path.rtt + 8 * path.queue / path.rate
//	utilisation = reno_utilisation(path.buffer) ± 1%
//	goodput[0] / goodput["late"] < 1.1
//
// A metric is one of internal/lab/result's catalogue; a dot may stand for its underline, and
// rtt, queue and cwnd are their means. Behind it may come a flow in brackets, by index or name,
// and in parentheses the cell that is meant, by the values that it has of what is swept: the
// cell is otherwise as the one that is looked at. A last part .mean, .median, .min, .max or .sd
// says what is made of the trials; without one it is the mean.
//
// Numbers with units are in seconds, bit/s and bytes, as metrics are, and a percentage is a
// number from 0 to 1. What is known to have another unit is not compared or added.
//
// scan.go reads characters, parse.go makes expressions of them, eval.go their values, unit.go
// knows units, function.go and theory.go what can be called.
package formula
