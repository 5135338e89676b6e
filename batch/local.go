package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/files"
)

// Local runs parts as processes of this machine.
type Local struct {
	// Workers is the number of parallel processes, unless the job sets one.
	Workers          int
	waiting, running atomic.Int32
	workers          sync.WaitGroup
}

// Name is the value of --on.
func (*Local) Name() string { return "local" }

// Limit returns 0: no limit.
func (*Local) Limit(context.Context) (int, error) { return 0, nil }

// Script returns the command lines.
func (*Local) Script(j *Job, parts []int) (string, error) {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintln(&b, j.command(fmt.Sprint(p)))
	}
	return b.String(), nil
}

// Gather does nothing: the results are in the folder.
func (*Local) Gather(context.Context, *Job) (bool, error) { return false, nil }

// Submit starts processes, a few at a time, and stops them when ctx ends.
func (l *Local) Submit(ctx context.Context, j *Job, parts []int) (string, error) {
	todo := make(chan int, len(parts))
	for _, p := range parts {
		todo <- p
	}
	close(todo)
	l.waiting.Add(int32(len(parts))) //nolint:gosec // the number of runs fits
	for range cmp.Or(j.AtOnce, l.Workers) {
		l.workers.Go(func() {
			for p := range todo {
				l.running.Add(1)
				l.waiting.Add(-1)
				// The part's log has the reason, and its results are missing.
				_ = l.runPart(ctx, j, p)
				l.running.Add(-1)
			}
		})
	}
	return l.Name(), nil
}

// Wait returns when all processes have ended and their logs are complete.
func (l *Local) Wait() { l.workers.Wait() }

func (l *Local) runPart(ctx context.Context, j *Job, part int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	path := filepath.Join(j.logs(), fmt.Sprintf("%s-%d.txt", l.Name(), part))
	if err := files.Overwrite(path, nil, 0o644); err != nil {
		return err
	}
	log, err := files.Machine().Edit(path, 0o644)
	if err != nil {
		return err
	}
	args := append(slices.Clone(j.Args), fmt.Sprintf("--index=%d", part))
	c := exec.CommandContext(ctx, j.Program(), args...) //nolint:gosec // runs our own program
	c.Stdout, c.Stderr = log, log
	err = c.Run()
	if ctx.Err() != nil {
		_, _ = fmt.Fprintln(log, stopped)
		// the process was not started, or a signal killed it
	} else if err != nil && c.ProcessState.ExitCode() < 0 {
		_, _ = fmt.Fprintln(log, err)
	}
	return errors.Join(err, log.Close())
}

// Tasks returns the number of unfinished parts.
func (l *Local) Tasks(context.Context, *Job) (Tasks, error) {
	return Tasks{Waiting: int(l.waiting.Load()), Running: int(l.running.Load())}, nil
}
