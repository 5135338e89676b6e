// Package lab runs experiments: the cells of a plan, each so many times, on all cores, into a
// directory that says all there is to say about them.
//
// study.go is what is to be run, pool.go runs it, sweep.go from beginning to end, index.go one
// cell of it for an engine that spreads the cells over machines. directory.go is the directory,
// manifest.go what it says about itself, lock_*.go who writes there. summary.go says what the
// runs come to, table.go prints it, compare.go compares two directories. verdict.go checks the
// expectations of an experiment against its runs, verdict_cell.go gives their formulas the numbers
// of the runs, verdict_text.go writes the verdicts for people.
//
// What a run comes to depends on the plan and its seed alone, never on what ran before it or
// beside it. So runs may end in any order, and a directory whose writer was killed is finished by
// whoever comes next, with the result that it would have had.
package lab
