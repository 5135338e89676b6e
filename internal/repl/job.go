package repl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

type job struct {
	name   string // the command and its subject, such as "sendfile big.bin"
	cancel context.CancelFunc
	opened chan struct{} // closed at the first progress report
	done   chan struct{} // closed after the end has been reported

	// The shell's lock guards the fields below.
	progress control.Progress
	moved    time.Time   // when the transfer last made progress
	idle     *time.Timer // redraws stalled bars; nil before the first progress
	started  bool
	watched  bool // the command waits for the transfer and reports its error
	ended    bool
	err      error
}

type (
	// progress receives a transfer's progress.
	progress func(control.Progress)
	// transfer executes a file transfer.
	transfer func(context.Context, progress) (control.Transfer, error)
)

// grace is how long sendfile waits for its background transfer to fail, so that it can report early
// errors itself (no such file, connection refused). recvfile waits until it listens, so that a
// script can start the sender.
const grace = 250 * time.Millisecond

// background runs a transfer in the background. The transfer belongs to the session and not to the
// line. The context of the line only limits the start.
func (s *Shell) background(c *cobra.Command, about, doing string, run transfer) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	j := s.newJob(c.Name()+" "+printable(about), cancel)
	go s.carry(ctx, c, j, run)

	var late <-chan time.Time
	if c.Name() == "sendfile" {
		late = time.After(grace)
	}
	select {
	case <-j.done:
	case <-j.opened:
	case <-late:
	case <-c.Context().Done():
		cancel()
		<-j.done
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j.watched = false
	switch {
	case j.ended:
		s.forget(j)
	case s.editor != nil:
		s.Say(j.name + " " + doing + ", in the background" + aside(j.progress.ID))
	}
	return j.err
}

// stallTime is the time without progress after which the bar shows a transfer as stalled.
const stallTime = time.Second

// stalled reports whether the transfer has stalled. The caller holds the lock.
func (j *job) stalled() bool { return !j.moved.IsZero() && time.Since(j.moved) >= stallTime }

// aside says how to list and stop a background transfer. id is 0 if the transfer has no number.
func aside(id int) string {
	if id == 0 {
		return "; `transfers` lists it"
	}
	return fmt.Sprintf(" as transfer %d\n"+
		"  `transfers` shows its progress, `cancel %[1]d` stops it", id)
}

// track lists a command among the transfers until the caller calls end.
func (s *Shell) track(name string, cancel context.CancelFunc) (tell progress, end func()) {
	j := s.newJob(name, cancel)
	return func(p control.Progress) { s.advance(j, p) }, func() {
		close(j.done)
		s.mu.Lock()
		s.forget(j)
		s.mu.Unlock()
		s.drawBars()
	}
}

func (s *Shell) newJob(name string, cancel context.CancelFunc) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := &job{
		name: name, cancel: cancel, watched: true,
		opened: make(chan struct{}), done: make(chan struct{}),
	}
	s.jobs = append(s.jobs, j)
	return j
}

// forget removes a job from the list of transfers. The caller holds the lock.
func (s *Shell) forget(j *job) {
	if j.idle != nil {
		j.idle.Stop()
	}
	s.jobs = slices.DeleteFunc(s.jobs, func(k *job) bool { return k == j })
	if len(s.jobs) == 0 {
		s.leaving = false
	}
}

func (s *Shell) carry(ctx context.Context, c *cobra.Command, j *job, run transfer) {
	defer close(j.done)
	defer j.cancel()
	result, err := s.runRecovered(ctx, j, run)
	switch {
	case err == nil:
		err = s.env.answer(c, result, printTransfer(result))
	case errors.Is(err, control.ErrStopped): // the error already contains the progress
	case errors.Is(err, context.Canceled):
		err = errors.New("canceled")
	}
	if err != nil {
		text := plainly(err) + help(c, err)
		switch verb, about := cut(j.name); {
		case strings.HasPrefix(text, verb):
		case strings.HasPrefix(text, about+": "): // the error names the file
			text = verb + ": " + text
		default:
			text = j.name + ": " + text
		}
		err = &commandError{text: text, cause: err}
	}
	if needsJSON(ctx, err) {
		err = s.env.documentFailure(c, false, err)
	}
	s.mu.Lock()
	j.ended, j.err = true, err
	// On a terminal no command waits for a job, so the shell prints the error. In a script `wait`
	// returns it.
	announce := !j.watched && s.editor != nil
	if !j.watched && (announce || err == nil) {
		s.forget(j)
	}
	s.mu.Unlock()
	s.drawBars()
	if announce && err != nil {
		s.complain(err)
	}
}

// runRecovered runs the transfer. It converts a panic to an error, as Execute does.
func (s *Shell) runRecovered(
	ctx context.Context, j *job, run transfer,
) (result control.Transfer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: this command panicked (the node continues): %v", p)
		}
	}()
	return run(ctx, func(p control.Progress) { s.advance(j, p) })
}

func (s *Shell) advance(j *job, p control.Progress) {
	s.mu.Lock()
	if !j.started {
		j.started = true
		close(j.opened)
	}
	if p.Bytes != j.progress.Bytes || j.moved.IsZero() {
		j.moved = time.Now()
	}
	if j.idle == nil {
		j.idle = time.AfterFunc(stallTime, s.drawBars)
	} else {
		j.idle.Reset(stallTime)
	}
	j.progress = p
	s.mu.Unlock()
	s.drawBars()
}

// await waits for every transfer and returns the first error that has not been reported yet.
func (s *Shell) await(ctx context.Context) error {
	var first error
	s.drawBars()
	for {
		s.mu.Lock()
		var j *job
		if len(s.jobs) > 0 {
			j = s.jobs[0]
		}
		s.mu.Unlock()
		if j == nil {
			return first
		}
		select {
		case <-j.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
		s.forget(j)
		s.mu.Unlock()
		if first == nil && s.env.script() {
			first = j.err
		} else if j.err != nil && s.env.script() {
			s.complain(j.err)
		}
	}
}

// abandon stops every transfer of the session and prints the progress of those that were running.
func (s *Shell) abandon() {
	s.mu.Lock()
	jobs := slices.Clone(s.jobs)
	s.mu.Unlock()
	for _, j := range jobs {
		j.cancel()
		<-j.done
		s.mu.Lock()
		s.forget(j)
		typed := s.editor != nil // if so, the error has already been printed
		s.mu.Unlock()
		if !typed {
			s.env.screen.setStatus("")
			s.printHalted(j.err)
		}
	}
}

func (s *Shell) interactive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.editor != nil
}

// mayLeave returns a quitError. While transfers run, it does so only at the second call.
func (s *Shell) mayLeave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) == 0 || s.leaving {
		return &quitError{}
	}
	s.leaving = true
	return fmt.Errorf("transfers are still running (%d): `wait` for them, or quit again to "+
		"stop them", len(s.jobs))
}
