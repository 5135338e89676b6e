// Package lab runs experiments: several trials of each cell of a plan, on all cores. It writes the
// results into a directory, prints them, compares them, and checks expectations.
//
// study.go has the experiment, pool.go the workers, sweep.go the whole run, index.go the run of a
// part for job schedulers. directory.go has the directory of results, manifest.go its description.
// summary.go computes the results, table.go prints them, compare.go compares two directories.
// verdict.go checks the expectations against the runs, verdict_cell.go evaluates their formulas,
// verdict_text.go formats the verdicts.
//
// A run in virtual time depends only on the plan and its seed, never on other runs. So runs may end
// in any order. If a process is killed, another one completes the directory with the same results.
package lab
