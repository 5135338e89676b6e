package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/batch"
	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/repl"
)

type labRunOptions struct {
	latex      bool
	style      figure.Style
	cc         string
	set, sweep []string
	netem, mm  string
	trials     int
	seed       uint64
	workers    int
	dir        string
	index      string
	parts      int
	pod        struct{ list, version string }
	until      string
	records    int
	pcap       bool
	metrics    []string
	all        bool
	fresh      bool
	plain      bool
	dry        bool
	json       bool
	dialect    string
	live       realFlags
}

const labRunLong = `Run an experiment: a preset of ` + "`node lab list`" + `, or a file.
The command prints one table, and writes all other results into a directory:
lab/NAME, or DIR of -o. With such a directory as its argument, it continues an
experiment that was stopped.

--set and --sweep replace values of the file, which itself stays unchanged.
--set path.down.rate=5Mbit/s sets a key; --sweep flows.0.cc=reno,cubic varies
a key, with a cell for each value.
--netem takes arguments of tc-netem(8), which replace the file's delay, loss
and so on in the direction of the data. --mm takes a mahimahi command line,
which replaces the path.

Each cell of a sweep runs --trials times. Trial i has the same random draws
in every cell, so that cells can be compared pair by pair.

If you repeat the command, it computes only the missing runs: after Ctrl-C,
after a crash, or with more trials. --index N runs one cell, counted from 0, for
batch systems whose machines share the directory. With --parts M it runs part N
of M equal parts, from 0. ` + "`node lab collect DIR`" + ` merges the results;
` + "`node lab submit`" + ` does all of this.

--real also runs each cell in real time, with processes of this machine: a
node for each end of a flow, and one process for the path between them. They
exchange packets over UDP. A minute of an experiment takes a minute. The report
compares the results in virtual and real time, and says whether the machine kept
up. Without --trials, each cell runs once.`

func labRunCommand() *cobra.Command {
	var o labRunOptions
	c := &cobra.Command{
		Use:   "run PRESET|FILE|DIR",
		Short: "run an experiment and print the results",
		Long:  labRunLong,
		Example: "  node lab run tahoe-low\n" +
			"  node lab run tahoe-low --real --set duration=40s\n" +
			"  node lab run tahoe-low --cc mine.star\n" +
			"  node lab run tahoe-low --sweep flows.0.cc=tahoe,reno,cubic --trials 30\n" +
			"  node lab run mine.yaml -o results --until 'ci<5%'\n" +
			"  node lab run rip-random-1000 --dialect rip2 --seed 7",
		Args:              cobra.ArbitraryArgs, // checked by experiment
		ValidArgsFunction: completing(experimentNames, cobra.ShellCompDirectiveDefault),
		RunE:              o.begin,
	}
	f := c.Flags()
	f.SortFlags = false
	o.experimentFlags(c)
	f.StringVar(&o.until, "until", "",
		"add trials until each confidence interval is below 5 % of its mean (`'ci<5%'`);"+
			" at most --trials, by default 200")
	f.IntVarP(&o.workers, "jobs", "j", runtime.GOMAXPROCS(0), "run `N` cells at a time")
	f.StringVar(&o.index, "index", "", "run only cell `N`, counted from 0, for a batch system")
	f.IntVar(&o.parts, "parts", 0, "split the runs into `N` parts; --index selects one, from 0")
	repl.Limit(c, 1, repl.Unlimited, "jobs", "parts")
	f.StringVar(&o.pod.list, "among", "", "take --index as a position in the `LIST` of parts")
	f.StringVar(&o.pod.version, "by", "", "fail unless this program has this `VERSION`")
	for _, name := range []string{"among", "by"} {
		_ = f.MarkHidden(name) // used by batch.Kubernetes
	}
	o.outputFlags(c)
	o.live.add(f)
	f.StringVar(&o.dialect, "dialect", "rip",
		"RIP `DIALECT` for the presets rip-…: rip (the course's), rip2 or ripng")
	repl.Choose(c, "dialect", "rip", "rip2", "ripng")
	return c
}

// experimentFlags adds the flags that select the runs and the directory of the results.
func (o *labRunOptions) experimentFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.cc, "cc", "",
		"use congestion control `NAME`, or a FILE.star, for all flows (see tutorial/)")
	addChanges(f, o)
	f.StringVar(&o.netem, "netem", "",
		"impair the data direction with `ARGUMENTS` of tc-netem(8), such as 'delay 40ms loss 1%'")
	f.StringVar(&o.mm, "mm", "",
		"emulate the path of a mahimahi `COMMAND`, such as 'mm-delay 40 mm-link UP DOWN'")
	f.IntVar(&o.trials, "trials", 0, "run each cell `N` times")
	f.Uint64Var(&o.seed, "seed", 0, "seed all random sources with `SEED`")
	f.StringVarP(&o.dir, "out", "o", "", "write results into `DIR`, or continue the results in it")
	f.BoolVar(&o.fresh, "fresh", false, "remove existing results, and run everything")
	f.IntVar(&o.records, "records", 6, "keep the detailed records of `N` cells, for figures")
	f.BoolVar(&o.pcap, "pcap", false, "capture the first trial of each cell, for Wireshark")
	repl.Limit(c, 1, repl.Unlimited, "trials")
	repl.Limit(c, 0, repl.Unlimited, "records")
}

func (o *labRunOptions) outputFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&o.metrics, "metrics", nil,
		"show the metrics `NAMES`, separated by commas, instead of those in the file")
	f.BoolVar(&o.all, "all", false, "print a row for every flow")
	f.BoolVar(&o.plain, "no-figures", false, "write neither figures nor a report")
	styleFlags(c, &o.style)
	f.BoolVar(&o.dry, "dry-run", false, "list the cells, and run nothing")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	latexFlag(c, o)
}

func addChanges(f *pflag.FlagSet, o *labRunOptions) {
	f.StringArrayVar(&o.set, "set", nil, "set a key of the file: `KEY=VALUE`; may be repeated")
	f.StringArrayVar(&o.sweep, "sweep", nil,
		"run once with each value of a key: `KEY=A,B,...`; may be repeated")
}

func (o *labRunOptions) begin(c *cobra.Command, args []string) error {
	name, err := o.experiment(args)
	if err == nil {
		err = o.validate(c)
	}
	if err != nil {
		return misuse(c, err)
	}
	if o.live.on && (name == casesName || isRouting(name)) {
		return misuse(c, fmt.Errorf("--real: %s runs only in virtual time", name))
	}
	if name == casesName {
		return runCases(c, o)
	}
	if isRouting(name) {
		return runRouting(c, name, o)
	}
	if c.Flags().Changed("dialect") {
		return misuse(c, fmt.Errorf("--dialect: %s has no RIP routers", name))
	}
	return labError(c, name, o.run(c, name))
}

func (o *labRunOptions) changed(c *cobra.Command) []string {
	var names []string
	c.Flags().Visit(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

func (o *labRunOptions) experiment(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", errors.New("an experiment is missing: a preset of `node lab list`, a file or a" +
			" directory of results")
	case len(args) > 1:
		return "", fmt.Errorf("unexpected argument: %q; only one experiment can run", args[1])
	}
	return args[0], nil
}

func (o *labRunOptions) validate(c *cobra.Command) error {
	given := c.Flags().Changed
	switch {
	case given("out") && o.dir == "":
		return errors.New("--out is empty: must be a directory")
	case given("cc") && o.cc == "":
		return errors.New("--cc is empty: must be a congestion control")
	case given("netem") && given("mm"):
		return errors.New("--netem and --mm both set the path: use one of them")
	case o.live.on && o.until != "":
		return errors.New("--real and --until cannot " +
			"be used together: --until adds runs, which is not possible in real time")
	case given("index") && o.index == "":
		return errors.New("--index is empty: must be the number of a cell or part, from 0")
	case given("index") && (o.fresh || o.until != ""):
		return errors.New("--index cannot be used with --fresh or --until")
	}
	if err := checkMetrics(o.metrics); err != nil {
		return err
	}
	_, err := o.precision()
	return err
}

// precision returns the number in --until, or 0 without the flag.
func (o *labRunOptions) precision() (float64, error) {
	if o.until == "" {
		return 0, nil
	}
	percent, found := strings.CutPrefix(strings.ReplaceAll(o.until, " ", ""), "ci<")
	percent, ends := strings.CutSuffix(percent, "%")
	p, err := strconv.ParseFloat(percent, 64)
	if !found || !ends || err != nil || math.IsNaN(p) || p <= 0 || p >= 100 {
		return 0, fmt.Errorf("--until %q: must be ci<P%%, such as 'ci<5%%'", o.until)
	}
	return p / 100, nil
}

// cell returns the number in --index, or -1 without the flag.
func (o *labRunOptions) cell() (int, error) {
	if o.index == "" {
		if o.parts > 0 {
			return 0, errors.New("--parts needs --index N, the number of the part to run")
		}
		return -1, nil
	}
	if o.pod.version != "" && o.pod.version != buildMark() {
		todo := "submit … --image NAME names an image of that version"
		if strings.Contains(o.pod.version+buildMark(), lab.Unpublished) {
			todo = "builds without a commit must be the same file: submit with the program of " +
				"the image, bin/image/node after `make image`"
		}
		return 0, fmt.Errorf("this program is version %s, and version %s submitted the job: %s",
			buildMark(), o.pod.version, todo)
	}
	if o.pod.list != "" {
		return batch.Index(o.pod.list, o.index)
	}
	n, err := strconv.Atoi(o.index)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("--index %q: must be the number of a cell or part, from 0", o.index)
	}
	return n, nil
}

func (o *labRunOptions) request(c *cobra.Command, name string) lab.Request {
	q := lab.Request{Experiment: name, Version: buildMark()}
	change := func(sweep bool, text string) {
		q.Changes = append(q.Changes, lab.Change{Sweep: sweep, Text: text})
	}
	if c.Flags().Changed("netem") {
		q.Changes = append(q.Changes, lab.Change{Netem: true, Text: o.netem})
	}
	if c.Flags().Changed("mm") {
		q.Changes = append(q.Changes, lab.Change{Mahimahi: true, Text: o.mm})
	}
	if o.cc != "" { // quoted, because a path may contain YAML syntax
		change(false, allFlows+strconv.Quote(filepath.ToSlash(o.cc)))
	}
	for _, s := range o.set {
		change(false, s)
	}
	for _, s := range o.sweep {
		change(true, s)
	}
	if c.Flags().Changed("seed") {
		change(false, fmt.Sprint("seed=", o.seed))
	}
	switch {
	case o.trials > 0:
		change(false, fmt.Sprint("trials=", o.trials))
	case o.until != "":
		change(false, "trials=200")
	}
	return q
}

// namingFlags rewrites errors about a change that stands for a flag, so that they name the flag.
func (o *labRunOptions) namingFlags(err error) error {
	if mistakes, ok := errors.AsType[plan.Errors](err); ok {
		for _, m := range mistakes {
			if o.cc != "" && m.Line == 0 && strings.HasPrefix(m.Source, allFlows) {
				m.File, m.Source, m.Col, m.Text = "--cc", o.cc, 1, o.cc
			}
		}
	}
	return err
}

// allFlows is the prefix of a change that sets the congestion control of all flows.
const allFlows = "flows.*.cc="

// spareHeap is memory that a run allocates and never touches, so it uses no physical memory. The
// garbage collector starts when the heap has doubled. With a larger heap it runs less often.
const spareHeap = 96 << 20

// limit returns lab.Options.Until. --trials alone overrides the precision stored in a directory.
func (o *labRunOptions) limit() float64 {
	if o.trials > 0 && o.until == "" {
		return -1
	}
	limit, _ := o.precision() // already validated
	return limit
}

// runPart runs a cell or a part. If the directory belongs to a submitted job, --parts must be the
// job's number of parts.
func (o *labRunOptions) runPart(
	ctx context.Context, study *lab.Study, p lab.Options, number int,
) (*lab.Results, error) {
	j, err := batch.Read(p.Dir)
	if err == nil && o.parts > 0 && o.parts != j.Parts {
		return nil, &usageError{fmt.Errorf("--parts %d: `node lab submit` has split %s into %d"+
			" parts; use --parts %d", o.parts, p.Dir, j.Parts, j.Parts)}
	}
	return lab.RunPart(ctx, study, p, lab.Part{Number: number, Of: o.parts})
}

// printNotes prints the notes and warnings about an experiment before it runs.
func printNotes(c *cobra.Command, study *lab.Study) {
	for _, w := range append(study.Notes, plan.Warnings(study.Cells)...) {
		_, _ = fmt.Fprintln(c.ErrOrStderr(), "note: "+w)
	}
}

func (o *labRunOptions) run(c *cobra.Command, name string) error {
	spare := make([]byte, spareHeap)
	defer runtime.KeepAlive(spare)
	cell, err := o.cell()
	if err != nil {
		return &usageError{err}
	}
	q := o.request(c, name)
	q.Printed = func(at time.Duration, line string) {
		_, _ = fmt.Fprintf(c.ErrOrStderr(), "%.6f s %s\n", at.Seconds(), line)
	}
	if err := o.live.request(&q, o.trials); err != nil {
		return err
	}
	study, err := lab.Load(q)
	if err != nil {
		return o.namingFlags(err)
	}
	if cell < 0 { // the log of a part contains only why it failed
		printNotes(c, study)
	}
	if o.dry {
		return study.List(c.OutOrStdout())
	}
	p := lab.Options{Dir: o.dir, Workers: o.workers, Records: o.records, Pcap: o.pcap}
	p.Real = func(runs int, most time.Duration) error { return o.live.begin(c, study, runs, most) }
	p.Until = o.limit()
	stale := false
	if p.Dir == "" {
		p.Dir, stale = lab.DefaultDir(study)
	}
	if o.fresh || stale {
		if err := lab.Clear(p.Dir); err != nil {
			return err
		}
	}
	progress := newProgress(newConsole(c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()))
	p.Progress = progress.tell
	ctx, stop := endBySignal(c.Context())
	defer stop()
	began := time.Now()
	var r *lab.Results
	if cell >= 0 {
		r, err = o.runPart(ctx, study, p, cell)
	} else {
		r, err = lab.Run(ctx, study, p)
	}
	progress.end()
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		progress.stopped(p.Dir, cell >= 0)
	}
	if err != nil {
		return err
	}
	t := taken{real: time.Since(began), now: true}
	if cell < 0 {
		if t.judged, err = r.Judge(study.Cells); err != nil {
			return err
		}
	}
	if cell < 0 && !o.plain {
		d := o.drawing()
		d.Workers, d.Judged = o.workers, t.judged
		if _, err := r.Draw(d); err != nil {
			return err
		}
	}
	return o.print(c, r, t)
}
