//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/tidepool-net/tidepool/bench/netstack"
	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/examine/fuzz"
	"github.com/tidepool-net/tidepool/examine/report"
)

// examineCommand lets the examiner examine gVisor.
func examineCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("examine", flag.ContinueOnError)
	if err := parse(flags, args); err != nil {
		return err
	}
	checks, err := examine.Checks()
	if err != nil {
		return err
	}
	const workers = 16
	exam := &examine.Exam{Subject: netstack.Subject(), Checks: checks, Workers: workers}
	exam.Done = func(r *examine.Result) { fmt.Print(report.Line(r)) }
	fmt.Print(report.Summary(exam.Run(ctx)))
	return nil
}

// fuzzCommand compares our engine, the kernel and gVisor by the same sequences.
func fuzzCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	count := flags.Int("sequences", 100_000, "how many to try with our engine; those that "+
		"together cover all that it does go to the other stacks")
	seed := flags.Uint64("seed", 1, "choose the sequences")
	out := flags.String("out", "", "write a check file for each kind of difference to `FOLDER`")
	if err := parse(flags, args); err != nil {
		return err
	}
	found, err := (&fuzz.Search{Stack: fuzz.Engine{}, Sequences: *count, Seed: *seed}).Run(ctx)
	if err != nil {
		return err
	}
	stacks := []fuzz.Stack{fuzz.Engine{}, fuzz.Subject{Subject: netstack.Subject()}}
	if kernel, err := examine.Kernel(); err == nil {
		stacks = append(stacks, fuzz.Subject{Subject: kernel})
	} else {
		fmt.Fprintln(os.Stderr, "skip: the kernel:", err)
	}
	const workers = 64
	table, err := fuzz.Compare(ctx, stacks, found.Corpus, workers)
	if err != nil {
		return err
	}
	fmt.Print(table.Markdown())
	if *out == "" {
		return nil
	}
	return table.WriteChecks(*out)
}
