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
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Slurm queues an array job by sbatch(1).
type Slurm struct {
	config map[string]string // what scontrol(1) says about the cluster; nil: not asked yet
}

// Name is the word after --on.
func (*Slurm) Name() string { return "slurm" }

// ask asks the controller for its configuration.
func (s *Slurm) ask(ctx context.Context) error {
	if s.config != nil {
		return nil
	}
	out, err := slurm(ctx, "", "scontrol", "show", "config")
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

// Limit is the smaller of the controller's MaxArraySize and MaxJobCount, which counts each part.
func (s *Slurm) Limit(ctx context.Context) (int, error) {
	if err := s.ask(ctx); err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(s.config["MaxArraySize"])
	if err != nil || n < 2 {
		return 0, fmt.Errorf("slurm allows no array jobs: its MaxArraySize is %q",
			s.config["MaxArraySize"])
	}
	if jobs, err := strconv.Atoi(s.config["MaxJobCount"]); err == nil && jobs > 1 {
		n = min(n, jobs)
	}
	return n - 1, nil // MaxArraySize bounds the largest index
}

// countsMemory reports whether the cluster gives memory to jobs. If it does not, it may refuse jobs
// that ask for some.
func (s *Slurm) countsMemory() bool {
	return strings.Contains(strings.ToUpper(s.config["SelectTypeParameters"]), "MEMORY")
}

// Script returns the batch script.
func (s *Slurm) Script(j *Job, parts []int) string {
	array := ranges(parts)
	if j.AtOnce > 0 {
		array += "%" + strconv.Itoa(j.AtOnce)
	}
	var b strings.Builder
	option := func(name, value string) { fmt.Fprintf(&b, "#SBATCH --%s=%s\n", name, quoted(value)) }
	b.WriteString("#!/bin/sh\n")
	option("job-name", "tidepool-"+j.Name)
	option("array", array)
	option("time", strconv.Itoa(int(math.Ceil(j.Time.Minutes()))))
	if s.countsMemory() {
		option("mem", fmt.Sprintf("%dM", j.Memory>>20))
	}
	option("cpus-per-task", "1")
	option("output", filepath.Join(j.logs(), "%A-%a.txt")) // as Job.log
	option("open-mode", "append")
	b.WriteString("#SBATCH --requeue\n")
	fmt.Fprintf(&b, "exec %s\n", j.command(`"$SLURM_ARRAY_TASK_ID"`))
	return b.String()
}

// Submit queues an array job.
func (s *Slurm) Submit(ctx context.Context, j *Job, parts []int) (string, error) {
	if err := s.ask(ctx); err != nil {
		return "", err
	}
	path := filepath.Join(j.Dir, folder, "job.sh")
	text := s.Script(j, parts)
	if err := result.WriteFile(path, []byte(text)); err != nil {
		return "", err
	}
	out, err := slurm(ctx, text, "sbatch", append([]string{"--parsable"}, j.Extra...)...)
	if err != nil {
		return "", err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";")
	if _, err := strconv.Atoi(id); err != nil {
		return "", fmt.Errorf("sbatch: %q is no number of a job", id)
	}
	return id, nil
}

// over are the states of tasks that will not run again.
var over = map[string]bool{
	"BOOT_FAIL": true, "CANCELLED": true, "COMPLETED": true, "DEADLINE": true, "FAILED": true,
	"OUT_OF_MEMORY": true, "REVOKED": true, "TIMEOUT": true,
}

// Tasks asks squeue(1).
func (*Slurm) Tasks(ctx context.Context, j *Job) (Tasks, error) {
	var t Tasks
	out, err := slurm(ctx, "", "squeue", "--noheader", "--array", "--jobs="+j.Task,
		"--format=%T|%r")
	if e, ok := errors.AsType[*refused](err); ok && strings.Contains(e.said, "Invalid job id") {
		return t, nil // forgotten: it ended a while ago
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

// refused is what a command of Slurm says when it fails.
type refused struct{ command, said string }

func (e *refused) Error() string {
	for _, h := range slurmHints {
		if strings.Contains(e.said, h.part) {
			return fmt.Sprintf("%s: %s; %s", e.command, e.said, h.hint)
		}
	}
	return e.command + ": " + e.said
}

// slurmHints say what to do about refusals; the first that fits counts.
var slurmHints = []struct{ part, hint string }{
	{"policy", "the limit is the cluster's: fewer --parts, a lower --time, or submit again later"},
	{"time limit", "submit … --time 30m sets a lower limit"},
	{"emory", "submit … --memory MB sets a lower limit"},
	{"ccount or", "sacctmgr show associations lists your accounts: submit … -- --account=NAME"},
	{"partition", "sinfo lists the partitions: submit … -- --partition=NAME"},
	{"qos", "sacctmgr show qos lists them: submit … -- --qos=NAME"},
	{"array", "the cluster allows smaller arrays: fewer --parts"},
	{"node configuration", "no node has that much: submit … --memory MB sets a lower limit, and" +
		" -- --partition=NAME names other nodes"},
	{"temporarily unable", "its queue is full: fewer --parts, or submit again later"},
	{"configuration source", "this machine belongs to no cluster: run this where squeue works, or" +
		" --on local"},
	{"resolve", "the cluster's controller has no address here: run this where squeue works"},
}

// slurmPatience bounds one command of Slurm: a controller that is gone leaves it waiting.
const slurmPatience = 30 * time.Second

// slurm runs a command of Slurm and returns its output.
func slurm(ctx context.Context, stdin, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, slurmPatience)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...) //nolint:gosec // a command of Slurm
	c.Stdin = strings.NewReader(stdin)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("there is no %s here: run this on a machine of the cluster that"+
			" submits jobs, or --on local", name)
	}
	if err == nil {
		return out.String(), nil
	}
	text := message(name, said.String())
	if ctx.Err() != nil || strings.Contains(text, "contact slurm controller") ||
		strings.Contains(text, "onnection refused") || strings.Contains(text, "imed out") {
		return "", fmt.Errorf("%s: %w: %s; `scontrol ping` asks the controller, and the same"+
			" command tries again", name, ErrSilent, cmp.Or(text, err.Error()))
	}
	if text == "" {
		text = err.Error()
	}
	return "", &refused{name, text}
}

// message is what a command said, in one line.
func message(command, said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{
			command + ": ", "error: ", "fatal: ", "slurm_load_jobs error: ",
		} {
			line = strings.TrimPrefix(line, prefix)
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
