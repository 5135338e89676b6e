package batch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Slurm queues an array job by sbatch(1).
type Slurm struct {
	config map[string]string // the cluster's settings from scontrol(1); nil: not read yet
}

// Name is the value of --on.
func (*Slurm) Name() string { return "slurm" }

func (s *Slurm) ask(ctx context.Context) error {
	if s.config != nil {
		return nil
	}
	out, err := slurm.run(ctx, "", "scontrol", "show", "config")
	if err != nil {
		return err
	}
	s.config = map[string]string{}
	for line := range strings.Lines(out) {
		if name, value, found := strings.Cut(line, "="); found {
			s.config[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return nil
}

// Limit is one less than the smaller of MaxArraySize and MaxJobCount. Each part is a job.
func (s *Slurm) Limit(ctx context.Context) (int, error) {
	if err := s.ask(ctx); err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(s.config["MaxArraySize"])
	if err != nil || n < 2 {
		return 0, fmt.Errorf("this Slurm cluster does not allow array jobs: MaxArraySize is %q",
			s.config["MaxArraySize"])
	}
	if jobs, err := strconv.Atoi(s.config["MaxJobCount"]); err == nil && jobs > 1 {
		n = min(n, jobs)
	}
	return n - 1, nil // MaxArraySize is one more than the largest index
}

// Script returns the batch script.
func (s *Slurm) Script(j *Job, parts []int) (string, error) {
	array := ranges(parts)
	if j.AtOnce > 0 {
		array += "%" + strconv.Itoa(j.AtOnce)
	}
	var b strings.Builder
	option := func(name, value string) {
		fmt.Fprintf(&b, "#SBATCH --%s=%s\n", name, diagnostic.ShellWord(value))
	}
	b.WriteString("#!/bin/sh\n")
	option("job-name", "tidepool-"+j.Name)
	option("array", array)
	option("time", strconv.Itoa(int(math.Ceil(j.Time.Minutes()))))
	// A cluster that does not track memory may reject jobs that request it.
	counted := strings.ToUpper(s.config["SelectTypeParameters"])
	if s.config == nil || strings.Contains(counted, "MEMORY") {
		option("mem", fmt.Sprintf("%dM", j.Memory>>20))
	}
	option("cpus-per-task", "1")
	option("output", filepath.Join(j.logs(), "%A-%a.txt")) // the same path as Job.log
	option("open-mode", "append")
	b.WriteString("#SBATCH --requeue\n")
	fmt.Fprintf(&b, "exec %s\n", j.command(`"$SLURM_ARRAY_TASK_ID"`))
	return b.String(), nil
}

// Gather does nothing: the machines share the folder.
func (*Slurm) Gather(context.Context, *Job) (bool, error) { return false, nil }

// Submit queues an array job with sbatch(1).
func (s *Slurm) Submit(ctx context.Context, j *Job, parts []int) (string, error) {
	if err := s.ask(ctx); err != nil {
		return "", err
	}
	path := filepath.Join(j.Dir, folder, "job.sh")
	text, err := s.Script(j, parts)
	if err != nil {
		return "", err
	}
	if err := result.WriteFile(path, []byte(text)); err != nil {
		return "", err
	}
	out, err := slurm.run(ctx, text, "sbatch", append([]string{"--parsable"}, j.Extra...)...)
	if err != nil {
		return "", err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";")
	if _, err := strconv.Atoi(id); err != nil {
		return "", fmt.Errorf("sbatch printed %q: expected a job number", id)
	}
	return id, nil
}

// over lists the states of tasks that will not run again.
var over = map[string]bool{
	"BOOT_FAIL": true, "CANCELLED": true, "COMPLETED": true, "DEADLINE": true, "FAILED": true,
	"OUT_OF_MEMORY": true, "REVOKED": true, "TIMEOUT": true,
}

// Tasks asks squeue(1) for the unfinished parts.
func (*Slurm) Tasks(ctx context.Context, j *Job) (Tasks, error) {
	var t Tasks
	out, err := slurm.run(ctx, "", "squeue", "--noheader", "--array", "--jobs="+j.Task,
		"--format=%T|%r")
	if e, ok := errors.AsType[*refused](err); ok && strings.Contains(e.output, "Invalid job id") {
		return t, nil // Slurm forgets a job some time after it has ended
	}
	if err != nil {
		return t, err
	}
	for line := range strings.Lines(out) {
		state, reason, _ := strings.Cut(strings.TrimSpace(line), "|")
		switch {
		case state == "" || over[state]:
		case state == "PENDING":
			t.Waiting++
			if reason != "None" {
				t.Reason = reason
			}
		default:
			t.Running++
		}
	}
	return t, nil
}

type system struct {
	// absent is the advice if the commands are not installed.
	absent string
	// silent lists parts of the messages that the commands print when the system does not answer.
	// retry is the advice in that case.
	silent []string
	retry  string
	// hints has advice for other errors. Only the first match is used.
	hints []hint
	// patience is the timeout of one command: commands block while the system is down.
	patience time.Duration
}

// hint is the advice for errors that contain part.
type hint struct{ part, todo string }

var slurm = &system{
	absent: "run this on a machine of the cluster that submits jobs, or use --on local",
	silent: []string{"contact slurm controller", "onnection refused", "imed out"},
	retry:  "`scontrol ping` asks the controller, and the same command tries again",
	hints: []hint{
		{
			"policy",
			"the limit is the cluster's: use fewer --parts, a lower --time, or submit again later",
		},
		{"time limit", "set a lower limit with --time, such as --time 30m"},
		{"emory", "set a lower limit with --memory MB"},
		{"ccount or", "sacctmgr show associations lists your accounts: submit … -- --account=NAME"},
		{"partition", "sinfo lists the partitions: submit … -- --partition=NAME"},
		{"qos", "sacctmgr show qos lists them: submit … -- --qos=NAME"},
		{"array", "the cluster allows smaller arrays: use fewer --parts"},
		{
			"node configuration",
			"no node has that much: set a lower limit with --memory MB, or choose other nodes" +
				" with -- --partition=NAME",
		},
		{"temporarily unable", "its queue is full: use fewer --parts, or submit again later"},
		{
			"configuration source",
			"this machine belongs to no cluster: run this where squeue works, or use --on local",
		},
		{"resolve", "the cluster's controller has no address here: run this where squeue works"},
	},
	patience: 30 * time.Second,
}

type refused struct {
	system          *system
	command, output string
}

func (e *refused) Error() string { return e.command + ": " + e.system.advised(e.output) }

// advised appends the advice for an error, if there is any.
func (s *system) advised(output string) string {
	for _, h := range s.hints {
		if strings.Contains(output, h.part) {
			return output + "; " + h.todo
		}
	}
	return output
}

// run runs a command of the system and returns its output.
func (s *system) run(ctx context.Context, stdin, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // a command of the system
	c.Stdin = strings.NewReader(stdin)
	var out, output bytes.Buffer
	c.Stdout, c.Stderr = &out, &output
	err := c.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not in PATH: %s", name, s.absent)
	}
	if err == nil {
		return out.String(), nil
	}
	text := cmp.Or(message(name, output.String()), err.Error())
	if ctx.Err() != nil || slices.ContainsFunc(s.silent, func(part string) bool {
		return strings.Contains(text, part)
	}) {
		return "", fmt.Errorf("%s: %w: %s; %s", name, ErrSilent, text, s.retry)
	}
	return "", &refused{s, name, text}
}

// logLine matches the log lines of kubectl's libraries and of Slurm's internal functions.
var logLine = regexp.MustCompile(`^([EWIF]\d{4} |_?[a-z]+(_[a-z]+)+: )`)

func message(command, output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{
			command + ": ", "error: ", "fatal: ", "slurm_load_jobs error: ",
			"slurm_load_ctl_conf error: ",
		} {
			line = strings.TrimPrefix(line, prefix)
		}
		if line != "" && !logLine.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
