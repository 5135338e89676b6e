//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/tidepool-net/tidepool/bench/lneto"
	"github.com/tidepool-net/tidepool/bench/netstack"
	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/examine/fuzz"
	"github.com/tidepool-net/tidepool/examine/report"
)

// stacks are the stacks of other projects that run in this process.
func stacks() map[string]examine.Subject {
	return map[string]examine.Subject{"gvisor": netstack.Subject(), "lneto": lneto.Subject()}
}

// examineCommand runs the examiner against a stack of another project.
func examineCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("examine", flag.ContinueOnError)
	name := flags.String("stack", "gvisor", "examine `STACK`: gvisor or lneto")
	if err := parse(flags, args); err != nil {
		return err
	}
	subject, ok := stacks()[*name]
	if !ok {
		return fmt.Errorf("--stack %s: must be gvisor or lneto", *name)
	}
	checks, err := examine.Checks()
	if err != nil {
		return err
	}
	const workers = 16
	exam := &examine.Exam{Subject: subject, Checks: checks, Workers: workers}
	exam.Done = func(r *examine.Result) { fmt.Print(report.Line(r)) }
	fmt.Print(report.Summary(exam.Run(ctx)))
	return nil
}

// fuzzCommand runs the same sequences against our engine, gVisor, lneto, the kernel and programs,
// and compares the results.
func fuzzCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	count := flags.Int("sequences", 100_000, "how many to try with our engine; those that "+
		"together cover all that it does go to the other stacks")
	seed := flags.Uint64("seed", 1, "choose the sequences")
	out := flags.String("out", "", "write a check file for each kind of difference to `FOLDER`")
	var programs []fuzz.Stack
	flags.Func("profile", "compare with the program that the profile in `FILE` describes",
		func(file string) error {
			p, err := examine.ReadProfile(file)
			s := fuzz.Subject{Subject: &examine.Course{Profile: p}, Settle: fuzz.DelayedACK}
			programs = append(programs, s)
			return err
		})
	if err := parse(flags, args); err != nil {
		return err
	}
	found, err := (&fuzz.Search{Stack: fuzz.Engine{}, Sequences: *count, Seed: *seed}).Run(ctx)
	if err != nil {
		return err
	}
	list := []fuzz.Stack{
		fuzz.Engine{},
		fuzz.Subject{Subject: netstack.Subject()},
		fuzz.Subject{Subject: lneto.Subject()},
	}
	if kernel, err := examine.Kernel(); err == nil {
		list = append(list, fuzz.Subject{Subject: kernel})
	} else {
		fmt.Fprintln(os.Stderr, "skip: the kernel:", err)
	}
	const workers = 128
	table, err := fuzz.Compare(ctx, append(list, programs...), found.Corpus, workers)
	if err != nil {
		return err
	}
	fmt.Printf("%d sequences on each stack\n\n%s", table.Sequences, table.Markdown())
	if *out == "" {
		return nil
	}
	return table.WriteChecks(*out)
}
