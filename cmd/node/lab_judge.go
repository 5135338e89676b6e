package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/play"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/judge/ns3"
)

// labJudgeOptions are the flags of `node lab judge`.
type labJudgeOptions struct {
	labRunOptions
	with, reno string
}

const labJudgeLong = `Run an experiment here and in another simulator, and print both results
with the difference and its 95 % interval. The simulator draws its own losses, so
the trials are not pairs.

The simulator is ns-3, which is optional: install the Python package ns3 and a C++
compiler. The first use compiles a small driver. An experiment with a part that
ns-3 does not have, such as jitter or a Starlark file, is refused.

The results of both are in directories: lab/NAME and lab/NAME-ns3, or DIR and DIR-ns3
with -o DIR. The report of the first shows both.`

func labJudgeCommand() *cobra.Command {
	var o labJudgeOptions
	c := &cobra.Command{
		Use:   "judge PRESET|FILE",
		Short: "run an experiment in ns-3 too, and compare",
		Long:  labJudgeLong,
		Example: "  node lab judge check-reno-buffer --with ns3\n" +
			"  node lab judge mine.yaml --with ns3 --trials 10",
		Args: usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: func(*cobra.Command, []string, string) (
			[]string, cobra.ShellCompDirective,
		) {
			return experimentNames(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return misuse(c, err)
			}
			return labError(c, args[0], o.run(c, args[0]))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.with, "with", "ns3", "the other simulator: ns3")
	choices(c, "with", "ns3")
	f.StringVar(&o.reno, "reno", "",
		"`NAME` is ns-3's congestion control of Reno flows; docs/ns3.md says why")
	choices(c, "reno", ns3.Renos()...)
	addChanges(f, &o.labRunOptions)
	f.IntVar(&o.trials, "trials", 0, "run each cell `N` times in both")
	f.StringVarP(&o.dir, "out", "o", "", "write results into `DIR` and DIR-ns3")
	f.BoolVar(&o.fresh, "fresh", false, "remove the results in there, and run everything")
	f.IntVarP(&o.workers, "jobs", "j", runtime.GOMAXPROCS(0), "run `N` at a time")
	f.StringSliceVar(&o.metrics, "metrics", nil, "compare the metrics `A,B,…`")
	f.BoolVar(&o.json, "json", false, "print one JSON array")
	return c
}

// check judges the flags.
func (o *labJudgeOptions) check(c *cobra.Command) error {
	switch {
	case o.with != "ns3":
		return fmt.Errorf("--with %q: must be ns3", o.with)
	case !slices.Contains(ns3.Renos(), o.reno):
		return fmt.Errorf("--reno %q: must be %s, or left out", o.reno,
			strings.Join(ns3.Renos()[1:], " or "))
	}
	return o.validate(c)
}

func (o *labJudgeOptions) run(c *cobra.Command, name string) error {
	study, err := lab.Load(o.request(c, name))
	if err != nil {
		return o.asGiven(err)
	}
	for i := range study.Cells {
		if err := ns3.Able(&study.Cells[i].Experiment); err != nil {
			return &usageError{fmt.Errorf("%s: %w", name, err)}
		}
	}
	ctx, stop := endBySignal(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	simulator, err := ns3.Find(ctx)
	if err != nil {
		return err
	}
	player := func(cell *plan.Cell, trial int, p play.Options) (
		*result.Trial, *result.Record, error,
	) {
		return simulator.Play(ctx, cell, trial, ns3.Options{Reno: o.reno, Record: p.Record})
	}
	title := "ns-3." + simulator.Version
	dir := o.dir
	if dir == "" {
		dir, _ = lab.Place(study)
	}
	ours, err := o.results(ctx, c, study, dir)
	if err != nil {
		return err
	}
	theirs, err := o.results(ctx, c, study.PlayedBy(title+o.reno, player), dir+"-ns3")
	if err != nil {
		return err
	}
	list, err := lab.Compare(ours, theirs)
	if err != nil {
		return err
	}
	drawing := o.drawing()
	drawing.Other, drawing.OtherName = theirs, "ns-3"
	report, err := ours.Draw(drawing)
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(list)
	}
	if err := lab.PrintComparison(c.OutOrStdout(), ours, theirs, list,
		lab.Shown{Metrics: o.chosen()}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), report)
	return err
}

// results runs what is missing of a study in a directory. ns-3's runs and figures of single runs
// are kept like the laboratory's own.
func (o *labJudgeOptions) results(ctx context.Context, c *cobra.Command, s *lab.Study, dir string) (
	*lab.Results, error,
) {
	if o.fresh {
		if err := lab.Clear(dir); err != nil {
			return nil, err
		}
	}
	progress := newProgress(newConsole(c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()))
	defer progress.end()
	r, err := lab.Run(ctx, s, lab.Options{
		Dir: dir, Workers: o.workers, Records: 1, Until: -1, Progress: progress.tell,
	})
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		progress.stopped(dir, false)
	}
	return r, err
}
