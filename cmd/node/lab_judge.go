package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/repl"
	"github.com/tidepool-net/tidepool/judge/ns3"
)

type labJudgeOptions struct {
	flags   labRunOptions // the flags of `node lab run` that this command supports
	with    string
	without []string
}

const labJudgeLong = `Run an experiment here and in another simulator, and print both results with
the difference and its 95 % confidence interval. The simulator draws its own
losses, so its trials cannot be paired with ours.

The simulator is ns-3, which is optional: install the Python package ns3 and
a C++ compiler. The first use compiles a small driver. The command refuses
experiments with parts that ns-3 lacks, such as jitter or a Starlark file.

The results are in two directories: lab/NAME and lab/NAME-ns3, or DIR and
DIR-ns3 with -o DIR. The report in the first directory compares both. If the
command is interrupted, the next run continues.`

func labJudgeCommand() *cobra.Command {
	var o labJudgeOptions
	c := &cobra.Command{
		Use:   "judge PRESET|FILE",
		Short: "compare the results of an experiment with ns-3's",
		Long:  labJudgeLong,
		Example: "  node lab judge check-reno-buffer --with ns3\n" +
			"  node lab judge mine.yaml --with ns3 --trials 10 --without end-growth",
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completing(experimentNames, cobra.ShellCompDirectiveDefault),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return misuse(c, err)
			}
			return labError(c, args[0], o.run(c, args[0]))
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.with, "with", "ns3", "compare with `SIMULATOR`: ns3")
	repl.Choose(c, "with", "ns3")
	f.StringSliceVar(&o.without, "without", nil,
		"remove the deviations `NAMES` from ns-3, separated by commas (docs/ns3.md lists them)")
	repl.CompleteFlag(c, "without", ns3.Deviations()...)
	addChanges(f, &o.flags)
	f.IntVar(&o.flags.trials, "trials", 0, "run each cell `N` times with each program")
	f.StringVarP(&o.flags.dir, "out", "o", "", "write results into `DIR` and DIR-ns3")
	f.BoolVar(&o.flags.fresh, "fresh", false, "remove existing results, and run everything")
	f.IntVarP(&o.flags.workers, "jobs", "j", runtime.GOMAXPROCS(0), "run `N` cells at a time")
	repl.Limit(c, 1, repl.Unlimited, "trials", "jobs")
	f.StringSliceVar(&o.flags.metrics, "metrics", nil,
		"compare only the metrics `NAMES`, separated by commas")
	f.BoolVar(&o.flags.json, "json", false, "print one JSON array")
	return c
}

func (o *labJudgeOptions) check(c *cobra.Command) error {
	for _, name := range o.without {
		if !slices.Contains(ns3.Deviations(), name) {
			return fmt.Errorf("--without %q: must be one of %s", name,
				strings.Join(ns3.Deviations(), ", "))
		}
	}
	return o.flags.validate(c)
}

func (o *labJudgeOptions) run(c *cobra.Command, name string) error {
	study, err := lab.Load(o.flags.request(c, name))
	if err != nil {
		return o.flags.namingFlags(err)
	}
	for i := range study.Cells {
		if err := ns3.Able(&study.Cells[i].Experiment); err != nil {
			return &usageError{fmt.Errorf("%s: %w", name, err)}
		}
	}
	ctx, stop := endBySignal(c.Context())
	defer stop()
	simulator, err := ns3.Find(ctx)
	if err != nil {
		return err
	}
	player := func(cell *plan.Cell, trial int, p simulation.Options) (
		*result.Trial, *result.Record, error,
	) {
		return simulator.Play(ctx, cell, trial, ns3.Options{Without: o.without, Record: p.Record})
	}
	title := "ns-3." + simulator.Version
	played := strings.Join(append([]string{title}, o.without...), " without ")
	other := study.PlayedBy(played, player)
	var here, there speed
	study.Play, other.Play = here.of(study.Play), there.of(other.Play)
	dir := o.flags.dir
	if dir == "" {
		dir, _ = lab.DefaultDir(study)
	}
	otherDir := strings.Join(append([]string{dir, "ns3"}, o.without...), "-")
	ours, err := o.results(ctx, c, study, dir, "tidepool: ")
	if err != nil {
		return err
	}
	theirs, err := o.results(ctx, c, other, otherDir, title+": ")
	if err != nil {
		return err
	}
	return o.print(c, ours, theirs, title, here.line(&there, title))
}

func (o *labJudgeOptions) print(c *cobra.Command, ours, theirs *lab.Results,
	title, speeds string,
) error {
	list, err := lab.Compare(ours, theirs)
	if err != nil {
		return err
	}
	drawing := o.flags.drawing()
	drawing.Other, drawing.OtherName = theirs, title
	report, err := ours.Draw(drawing)
	if err != nil {
		return err
	}
	if o.flags.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(list)
	}
	if err := lab.PrintComparison(c.OutOrStdout(), ours, theirs, list,
		lab.TableOptions{Metrics: o.flags.chosen()}); err != nil {
		return err
	}
	_, err = fmt.Fprint(c.OutOrStdout(), speeds, report, "\n")
	return err
}

// speed adds up the packets and run times of a simulator. Each run uses one core.
type speed struct {
	mu      sync.Mutex
	packets float64
	took    time.Duration
}

func (s *speed) of(player lab.Player) lab.Player {
	return func(cell *plan.Cell, trial int, o simulation.Options) (
		*result.Trial, *result.Record, error,
	) {
		began := time.Now()
		t, r, err := player(cell, trial, o)
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.packets += t.Whole[result.Packets]
			s.took += time.Since(began)
		}
		return t, r, err
	}
}

// line compares two speeds. It is empty if one of them has no new runs.
func (s *speed) line(other *speed, name string) string {
	if s.took == 0 || other.took == 0 {
		return ""
	}
	here, there := s.packets/s.took.Seconds(), other.packets/other.took.Seconds()
	return fmt.Sprintf("a core simulates %.0f packets/s here, %.0f in %s: %.0f times as many\n",
		here, there, name, here/there)
}

// results runs the missing parts of a study in a directory. It stores the runs and figures of ns-3
// in the same form as the laboratory's own.
func (o *labJudgeOptions) results(ctx context.Context, c *cobra.Command, s *lab.Study,
	dir, label string,
) (*lab.Results, error) {
	if o.flags.fresh {
		if err := lab.Clear(dir); err != nil {
			return nil, err
		}
	}
	progress := newProgress(newConsole(c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()))
	progress.label = label
	defer progress.end()
	r, err := lab.Run(ctx, s, lab.Options{
		Dir: dir, Workers: o.flags.workers, Records: 1, Until: -1, Progress: progress.tell,
	})
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		progress.stopped(dir, false)
	}
	return r, err
}
