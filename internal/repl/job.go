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
	name   string // the command and its subject: "sendfile big.bin"
	cancel context.CancelFunc
	opened chan struct{} // closed at the first progress report
	done   chan struct{} // closed when its end was reported

	// The fields below are guarded by the shell's lock.
	progress control.Progress
	moved    time.Time   // when bytes last moved
	idle     *time.Timer // redraws the bars without progress; nil before the first
	started  bool
	watched  bool // the command still waits for it, and reports its error
	ended    bool
	err      error
}

type (
	// progress is called with a transfer's progress.
	progress func(control.Progress)
	// transfer executes a file transfer.
	transfer func(context.Context, progress) (control.Transfer, error)
)

// grace is how long sendfile waits for its background transfer. Early errors (no such file,
// connection refused) are then the command's own. recvfile waits until it listens, so that a script
// can start the sender.
const grace = 250 * time.Millisecond

// background runs a transfer in the background. It belongs to the session and not to the line,
// whose context only limits the start.
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

// stallTime is the time without progress after which a transfer is shown as stalled.
const stallTime = time.Second

// stalled reports whether a transfer has stalled. The caller holds the lock.
func (j *job) stalled() bool { return !j.moved.IsZero() && time.Since(j.moved) >= stallTime }

// aside says how to list and stop a background transfer; 0: it has no number.
func aside(id int) string {
	if id == 0 {
		return "; `transfers` lists it"
	}
	return fmt.Sprintf(" as transfer %d\n"+
		"  `transfers` shows its progress, `cancel %[1]d` stops it", id)
}

// track lists a command among the transfers until end is called.
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

// forget removes a job from the list. The caller holds the lock.
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
	result, err := s.guarded(ctx, j, run)
	switch {
	case err == nil:
		err = s.env.answer(c, result, printTransfer(result))
	case errors.Is(err, control.ErrStopped): // the error contains the progress
	case errors.Is(err, context.Canceled):
		err = errors.New("canceled")
	}
	verb, _ := cut(j.name)
	switch {
	case err == nil:
	case strings.HasPrefix(err.Error(), verb):
		err = &renamed{text: plainly(err), cause: err}
	default:
		err = &renamed{text: j.name + ": " + plainly(err), cause: err}
	}
	if undocumented(ctx, err) {
		err = s.env.documentFailure(c, false, err)
	}
	s.mu.Lock()
	j.ended, j.err = true, err
	// At a terminal nothing waits for a job, so its error is announced. In a script `wait` returns
	// it.
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

// guarded runs the transfer and converts a panic to an error, like Execute.
func (s *Shell) guarded(
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

// await waits for every transfer and returns the first error that was not reported.
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

// abandon stops every transfer of the session, and reports the progress of the running ones.
func (s *Shell) abandon() {
	s.mu.Lock()
	jobs := slices.Clone(s.jobs)
	s.mu.Unlock()
	for _, j := range jobs {
		j.cancel()
		<-j.done
		s.mu.Lock()
		s.forget(j)
		typed := s.editor != nil // the error has been announced
		s.mu.Unlock()
		if !typed {
			s.env.screen.setStatus("")
			s.halted(j.err)
		}
	}
}

func (s *Shell) interactive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.editor != nil
}

// mayLeave returns a quitting error, but while transfers run only at the second call.
func (s *Shell) mayLeave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) == 0 || s.leaving {
		return &quitting{}
	}
	s.leaving = true
	return fmt.Errorf("transfers still run (%d): `wait` for them, or quit again to stop them",
		len(s.jobs))
}
