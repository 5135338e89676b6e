package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/batch"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/repl"
)

type submitOptions struct {
	run     labRunOptions
	on      string
	atOnce  int
	time    time.Duration
	memory  int64 // memory of a part, in bytes
	retries int
	detach  bool
	extra   []string
	pod     batch.Pod
	most    int // the engine's limit of parts per job; 0: no limit
}

const labSubmitLong = `Run an experiment on a batch system: queue an array job, wait, and print the
results. The result files are byte-identical to those of ` + "`node lab run`" + `.

Slurm's machines must share the folder of results: lab/NAME, or the directory of -o.
On Kubernetes, the pods share the volume of --claim, and the command copies
the results from there into the folder. --image must contain this version of
the program.

The runs of the experiment are split into parts, and each task of the array
runs one part. The command first measures one run. The time limit of a task
is four times the measured time, multiplied by the number of runs in its
part. Its memory limit is twice the measured memory. Parts that failed are
queued again with twice the limits.

Ctrl-C leaves the job in its queue, but stops parts on this machine. To wait
again and to queue missing parts, repeat the command, or run it with the folder
of results as its argument.
` + "`node lab collect DIR`" + ` prints the results so far. Arguments after -- are for
sbatch, or for each call of kubectl.`

func labSubmitCommand() *cobra.Command {
	var o submitOptions
	c := &cobra.Command{
		Use:   "submit PRESET|FILE|DIR [flags] [-- ARGUMENT...]",
		Short: "run an experiment on a batch system",
		Long:  labSubmitLong,
		Example: "  node lab submit tahoe-low --trials 64 --on slurm\n" +
			"  node lab submit mine.yaml --on slurm -o /shared/mine -- --partition=short\n" +
			"  node lab submit /shared/mine --on slurm\n" +
			"  node lab submit mine.yaml --on kubernetes --claim sweeps -- --namespace=lab\n" +
			"  node lab submit tahoe-low --trials 64 --on slurm --dry-run",
		Args:              cobra.ArbitraryArgs, // checked by begin
		ValidArgsFunction: completing(experimentNames, cobra.ShellCompDirectiveDefault),
		RunE:              o.begin,
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.on, "on", "",
		"use batch `SYSTEM`: slurm, kubernetes, or local for processes of this machine")
	repl.CompleteFlag(c, "on", systems...)
	o.run.experimentFlags(c)
	o.run.outputFlags(c)
	f.IntVar(&o.run.parts, "parts", 0,
		"split the runs into `N` parts (default: computed from the measured time of a run)")
	f.IntVar(&o.atOnce, "at-once", 0, "run at most `N` parts at a time")
	f.DurationVar(&o.time, "time", 0,
		"set the time `LIMIT` of a part, at least 1m; Kubernetes adds 5m "+
			"(default: 4 × the measured time of its runs)")
	f.Func("memory", "set the memory limit of a part to `MB` (default: 2 × the measured memory)",
		o.setMemory)
	f.IntVar(&o.retries, "retries", 3, "queue failed parts again, at most `N` times")
	repl.Limit(c, 1, repl.Unlimited, "parts", "at-once")
	repl.Limit(c, 0, repl.Unlimited, "retries")
	f.BoolVar(&o.detach, "detach", false, "do not wait for the results")
	f.Lookup("dry-run").Usage = "measure one run and print the job " +
		"instead of submitting it"
	podFlags(f, &o.pod)
	f.StringVar(&o.pod.ClaimSize, "claim-size", "",
		"if the claim does not exist, create it with `SIZE`, such as 10Gi (ReadWriteMany)")
	return c
}

var systems = []string{"slurm", kubernetes, "local"}

const kubernetes = "kubernetes"

func podFlags(f *pflag.FlagSet, p *batch.Pod) {
	f.StringVar(&p.Image, "image", "", "Kubernetes: container `IMAGE` with this version (default: "+
		defaultImage()+")")
	f.StringVar(&p.Claim, "claim", "",
		"Kubernetes: the results are in the volume `CLAIM` (default: tidepool)")
}

// setPod sets a job's image, volume claim and extra arguments. A flag takes precedence over the
// job's earlier value, and that over the default.
func setPod(j *batch.Job, p batch.Pod, extra []string) {
	j.Pod.Image = cmp.Or(p.Image, j.Pod.Image, defaultImage())
	j.Pod.Claim = cmp.Or(p.Claim, j.Pod.Claim, "tidepool")
	j.Pod.ClaimSize = p.ClaimSize
	if len(extra) > 0 {
		j.Extra = extra
	}
}

func (o *submitOptions) begin(c *cobra.Command, args []string) error {
	if at := c.ArgsLenAtDash(); at >= 0 {
		args, o.extra = args[:at], args[at:]
	}
	engine, err := o.engine()
	var name string
	if err == nil {
		name, err = o.run.experiment(args)
	}
	if err == nil {
		err = o.validate(c)
	}
	if err != nil {
		return misuse(c, err)
	}
	if name == casesName || isRouting(name) {
		return misuse(c, fmt.Errorf("%s is built in and runs on one machine: use node lab run %s",
			name, name))
	}
	ctx, stop := endBySignal(c.Context())
	defer stop()
	return labError(c, name, o.submit(ctx, c, name, engine))
}

func (o *submitOptions) engine() (batch.Engine, error) {
	switch o.on {
	case "slurm":
		return &batch.Slurm{}, nil
	case "local":
		return &batch.Local{Workers: runtime.GOMAXPROCS(0)}, nil
	case kubernetes:
		return &batch.Kubernetes{}, nil
	case "":
		return nil, errors.New("--on SYSTEM is missing: slurm, kubernetes or local")
	}
	return nil, fmt.Errorf("--on %q: must be slurm, kubernetes or local%s", o.on,
		diagnostic.DidYouMean(o.on, systems))
}

func (o *submitOptions) setMemory(text string) error {
	mb, err := strconv.ParseInt(text, 10, 32)
	if err != nil || mb < 1 {
		return errors.New("must be a number of MB without a unit, such as 500")
	}
	o.memory = mb << 20
	return nil
}

func (o *submitOptions) validate(c *cobra.Command) error {
	given := c.Flags().Changed
	switch {
	case given("time") && o.time < time.Minute:
		return fmt.Errorf("--time %s: must be 1m or more, such as 30m", o.time)
	case o.on == "local" && len(o.extra) > 0:
		return fmt.Errorf("unexpected argument: %q; put arguments of sbatch or kubectl after --",
			o.extra[0])
	case o.detach && o.on == "local":
		return errors.New("--detach cannot be used with --on " +
			"local: local processes stop with this command")
	case o.on != kubernetes && o.pod != batch.Pod{}:
		return errors.New("--image, --claim and --claim-size need --on kubernetes")
	case o.on == kubernetes && o.run.fresh:
		return errors.New("--fresh cannot clear the cluster's " +
			"volume: choose another folder with -o")
	}
	if err := o.pod.Check(); err != nil {
		return err
	}
	o.run.workers = 1
	return o.run.validate(c)
}

func (o *submitOptions) submit(
	ctx context.Context, c *cobra.Command, name string, engine batch.Engine,
) (err error) {
	study, err := lab.Load(o.run.request(c, name))
	if err != nil {
		return o.run.namingFlags(err)
	}
	printNotes(c, study)
	if n := study.Runs(); o.run.parts > n {
		return &usageError{fmt.Errorf("--parts %d: must be 1 to %d, the number of runs",
			o.run.parts, n)}
	}
	if o.most, err = engine.Limit(ctx); err != nil && !o.run.dry {
		return err
	} else if err != nil {
		_, _ = fmt.Fprintln(c.ErrOrStderr(), "note: the cluster's limits are unknown:", err)
	}
	if o.most > 0 && o.run.parts > o.most {
		return &usageError{fmt.Errorf("--parts %d: must be 1 to %d, the limit of %s", o.run.parts,
			o.most, engine.Name())}
	}
	if o.run.dry {
		return o.preview(ctx, c, study, engine)
	}
	if l, ok := engine.(*batch.Local); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer l.Wait()
		defer cancel()
	}
	r := &batch.Run{
		Engine: engine, Retries: o.retries, Interval: time.Second,
		Tell: func(line string) { _, _ = fmt.Fprintln(c.ErrOrStderr(), line) },
	}
	lock, err := o.prepare(ctx, c, study, r)
	if ctx.Err() != nil {
		r.Tell("stopped; nothing was queued")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	dir := r.Dir
	r.Missing = func() ([]int, error) {
		results, err := lab.Read(dir)
		if err != nil {
			return nil, err
		}
		return results.MissingParts(r.Parts), nil
	}
	r.Done = func() (int, error) { return lab.PartsDone(dir, r.Parts) }
	if queued, err := r.Start(ctx); err != nil {
		return err
	} else if queued && !o.detach {
		if err := o.wait(ctx, c, r); err != nil {
			return err
		}
	}
	if o.detach {
		return nil
	}
	return o.run.collect(c, o.run.dir)
}

// prepare creates the folder of the results, locks it against other submitters and reads its job,
// if it has one. That job must be of the same experiment.
func (o *submitOptions) prepare(
	ctx context.Context, c *cobra.Command, study *lab.Study, r *batch.Run,
) (lock *os.File, err error) {
	dir, stale := o.run.dir, false
	if dir == "" {
		dir, stale = lab.DefaultDir(study)
	}
	o.run.dir = dir
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	anew := o.run.fresh || stale
	if !anew {
		if err := lab.Prepare(dir, study); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(batch.LockFile(dir)), 0o777); err != nil {
		return nil, err
	}
	lock, err = lab.Lock(batch.LockFile(dir))
	if errors.Is(err, lab.ErrBusy) {
		err = fmt.Errorf("%s: another `node lab submit` is waiting for its parts: wait for it, or "+
			"stop it first", dir)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	j, err := batch.Read(dir)
	switch {
	case err == nil && (anew || j.Parts > study.Runs() ||
		o.run.parts > 0 && o.run.parts != j.Parts):
		if err := o.forget(ctx, j, r.Engine); err != nil {
			return nil, err
		}
		j = nil
	case errors.Is(err, os.ErrNotExist):
		j = nil
	case err != nil:
		return nil, err
	}
	if anew {
		if err := errors.Join(lab.Clear(dir), lab.Prepare(dir, study)); err != nil {
			return nil, err
		}
	}
	if j == nil {
		r.Job, err = o.job(ctx, study, dir)
		return lock, err
	}
	r.Job = j
	return lock, o.change(c, j, study)
}

// forget removes the record of a replaced job. It fails if the engine still has parts of the job.
func (o *submitOptions) forget(ctx context.Context, j *batch.Job, engine batch.Engine) error {
	if j.Engine == engine.Name() && j.Task != "" {
		t, err := engine.Tasks(ctx, j)
		if n := t.Waiting + t.Running; err == nil && n > 0 {
			err = fmt.Errorf("%s: job %s has %d of %d parts left: cancel it, or submit without"+
				" --fresh and with --parts %d", j.Dir, j.Task, n, j.Parts, j.Parts)
		}
		if err != nil {
			return err
		}
	}
	return j.Forget()
}

// change updates a job that was queued before with the values of this command's flags.
func (o *submitOptions) change(c *cobra.Command, j *batch.Job, study *lab.Study) error {
	given := c.Flags().Changed
	if given("time") {
		j.Time = o.time
	}
	if given("memory") {
		j.Memory = o.memory
	}
	if given("at-once") {
		j.AtOnce = o.atOnce
	}
	if given("records") || given("pcap") {
		j.Args = o.task(j.Dir, j.Parts)
	}
	return errors.Join(o.assign(j, study), j.Install())
}

func (o *submitOptions) assign(j *batch.Job, study *lab.Study) error {
	if o.on != kubernetes {
		j.Extra = o.extra
		return nil
	}
	setPod(j, o.pod, o.extra)
	var elsewhere []string
	if j.Files, elsewhere = study.Texts(); len(elsewhere) > 0 {
		return &usageError{fmt.Errorf("pods do not have the file %s: name it by a path below the "+
			"current folder", elsewhere[0])}
	}
	return nil
}

// job returns a new job. It measures one run to choose the job's resources.
func (o *submitOptions) job(ctx context.Context, study *lab.Study, dir string) (*batch.Job, error) {
	j := &batch.Job{
		Name: study.Name, Dir: dir, Parts: o.run.parts, AtOnce: o.atOnce, Time: o.time,
		Memory: o.memory,
	}
	if err := o.assign(j, study); err != nil {
		return nil, err
	}
	if o.on == kubernetes && !o.run.dry {
		if err := (&batch.Kubernetes{}).Ready(ctx, j); err != nil {
			return nil, err
		}
	}
	if err := j.Install(); err != nil {
		return nil, err
	}
	need, err := o.measure(ctx, j, study.Runs())
	if err != nil {
		return nil, err
	}
	j.Divide(study.Runs(), o.most, need)
	j.Args = o.task(dir, j.Parts)
	return j, nil
}

// measure measures the resources of one run. It keeps the run's result, except for Kubernetes.
func (o *submitOptions) measure(
	ctx context.Context, j *batch.Job, runs int,
) (need batch.Need, err error) {
	out := j.Dir
	if o.on == kubernetes {
		if out, err = os.MkdirTemp("", "tidepool-measure-"); err != nil {
			return need, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(out)) }()
	}
	return j.Measure(ctx, append(o.taskIn(j.Dir, out, runs), "--index=0"))
}

// task returns the command line of a task without --index=PART.
func (o *submitOptions) task(dir string, parts int) []string {
	if o.on != kubernetes {
		return o.taskIn(dir, dir, parts)
	}
	from, to := batch.InPod(dir)
	return append(o.taskIn(from, to, parts), "--by", buildMark())
}

func (o *submitOptions) taskIn(from, to string, parts int) []string {
	args := []string{
		"lab", "run", from, "--out", to, "--no-figures", "--jobs", "1",
		"--records", fmt.Sprint(o.run.records), "--parts", fmt.Sprint(parts),
	}
	if o.run.pcap {
		args = append(args, "--pcap")
	}
	return args
}

// preview prints what would be submitted. It measures one run in a temporary folder.
func (o *submitOptions) preview(
	ctx context.Context, c *cobra.Command, study *lab.Study, engine batch.Engine,
) (err error) {
	dir := o.run.dir
	if dir == "" {
		dir, _ = lab.DefaultDir(study)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "tidepool-submit-")
	if err != nil {
		return err
	}
	defer func() {
		if e := os.RemoveAll(scratch); err == nil {
			err = e
		}
	}()
	if err := lab.Prepare(scratch, study); err != nil {
		return err
	}
	j, err := o.job(ctx, study, scratch)
	if err != nil {
		return err
	}
	j.Dir, j.Args = dir, o.task(dir, j.Parts)
	parts := make([]int, j.Parts)
	for i := range parts {
		parts[i] = i
	}
	script, err := engine.Script(j, parts)
	if err == nil {
		_, err = fmt.Fprint(c.OutOrStdout(), script)
	}
	if len(o.extra) > 0 && err == nil {
		_, _ = fmt.Fprintf(c.ErrOrStderr(), "note: %s also gets the arguments %s\n",
			map[string]string{"slurm": "sbatch", kubernetes: "kubectl"}[o.on],
			strings.Join(o.extra, " "))
	}
	return err
}

// wait waits for the parts. On a terminal it shows their progress.
func (o *submitOptions) wait(ctx context.Context, c *cobra.Command, run *batch.Run) error {
	progress := newProgress(newConsole(c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()))
	progress.unit = "part"
	run.Progress = func(done int, t batch.Tasks, silent time.Duration) {
		progress.note = fmt.Sprintf(", %d running, %d waiting", t.Running, t.Waiting)
		if t.Reason != "" && t.Running == 0 {
			progress.note += " (" + t.Reason + ")"
		}
		if silent > 0 {
			progress.note = fmt.Sprintf(", %s has not answered for %s", run.Engine.Name(), silent)
		}
		progress.tell(done, run.Parts)
	}
	tell := run.Tell
	run.Tell = func(line string) { progress.end(); tell(line) }
	err := run.Wait(ctx)
	progress.end()
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		text := "stopped the parts that ran; "
		if o.on != "local" {
			text = fmt.Sprintf("stopped waiting; job %s stays queued; ", run.Task)
		}
		tell(named(fmt.Sprintf("%s`node lab submit %s --on %s` continues", text, run.Dir, o.on)))
	}
	return err
}
