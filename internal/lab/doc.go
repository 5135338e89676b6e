// Package lab runs experiments: the cells of a plan, several trials of each, on all cores. It
// writes the results into a directory, prints and compares them, and checks expectations.
//
// study.go has the experiment, pool.go the workers, sweep.go the whole run, index.go the run of a
// single cell for job schedulers. directory.go has the directory of results, manifest.go its
// description, lock_*.go its lock. summary.go computes the results, table.go prints them,
// compare.go compares two directories. verdict.go checks the expectations against the runs,
// verdict_cell.go evaluates their formulas, verdict_text.go formats the verdicts.
//
// A run depends only on the plan and its seed, never on other runs. So runs may end in any order,
// and if a process was killed, another one completes its directory with the same results.
package lab
