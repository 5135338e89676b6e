package batch

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Run queues the parts that are missing and waits until none is.
type Run struct {
	*Job
	Engine Engine
	// Missing returns the parts whose results are not there. Done counts the parts whose results
	// are there; it is called often.
	Missing func() ([]int, error)
	Done    func() (int, error)
	// Retries is how often parts that failed are queued again.
	Retries int
	// Tell is called with a line when something has happened, Progress as often as the engine was
	// asked. Silent is for how long the engine has not answered.
	Tell     func(line string)
	Progress func(done int, t Tasks, silent time.Duration)
	// Interval is the time between two questions to the engine.
	Interval time.Duration
}

// settle is for how many intervals a result may be on its way through a shared file system after
// its task has ended.
const settle = 5

// Start queues the parts that are missing, unless an earlier Start's are still queued. It reports
// whether there is anything to wait for.
func (r *Run) Start(ctx context.Context) (bool, error) {
	missing, err := r.Missing()
	if err != nil || len(missing) == 0 {
		return false, err
	}
	if r.Task != "" && r.Job.Engine == r.Engine.Name() {
		t, err := r.Engine.Tasks(ctx, r.Job)
		if err != nil {
			return false, err
		}
		if n := t.Waiting + t.Running; n > 0 {
			r.Tell(fmt.Sprintf("job %s has %d of %d parts left", r.Task, n, r.Parts))
			return true, nil
		}
	}
	r.Tries = 0
	return true, r.submit(ctx, missing)
}

func (r *Run) submit(ctx context.Context, parts []int) error {
	task, err := r.Engine.Submit(ctx, r.Job, parts)
	if err != nil {
		return err
	}
	r.Job.Engine, r.Task = r.Engine.Name(), task
	r.Tries++
	r.Tell(fmt.Sprintf("job %s: %d of %d parts, each at most %s and %d MB", task, len(parts),
		r.Parts, r.Time, r.Memory>>20))
	return r.write()
}

// Wait returns when no part is missing. Parts that failed are queued again, each time with twice
// the limits. The parts stay queued when ctx is over.
func (r *Run) Wait(ctx context.Context) error {
	ticker := time.NewTicker(r.Interval)
	defer ticker.Stop()
	answered, idle := time.Now(), 0
	for {
		t, err := r.Engine.Tasks(ctx, r.Job)
		switch {
		case errors.Is(err, ErrSilent):
			idle = 0
		case err != nil:
			return err
		default:
			answered = time.Now()
			if idle++; t.Waiting+t.Running > 0 {
				idle = 0
			}
		}
		done, err := r.Done()
		if err != nil {
			return err
		}
		r.Progress(done, t, time.Since(answered).Truncate(time.Second))
		if idle > 0 {
			over, err := r.ended(ctx, idle >= settle)
			if over || err != nil {
				return err
			}
			if idle >= settle {
				idle = 0
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ended looks at what the engine's last task has left. It reports whether all parts are done, and
// queues those that are missing if they are not on their way any more.
func (r *Run) ended(ctx context.Context, settled bool) (bool, error) {
	missing, err := r.Missing()
	if err != nil || len(missing) == 0 {
		return err == nil, err
	}
	if !settled {
		return false, nil
	}
	why := r.Complaint(missing)
	if r.Tries > r.Retries {
		return false, r.failed(missing, why)
	}
	if why != "" {
		why = "; " + why
	}
	r.Tell(fmt.Sprintf("%d parts failed and are queued again%s", len(missing), why))
	r.Time *= 2
	r.Memory *= 2
	return false, r.submit(ctx, missing)
}

// failed is the error of parts that failed too often.
func (r *Run) failed(missing []int, why string) error {
	if why == "" && len(missing) == r.Parts {
		return fmt.Errorf("no part left a result or a message in %s: do all machines share this"+
			" folder?", r.Dir)
	}
	if why == "" {
		why = "they left no message; the batch system may have ended them"
	}
	return fmt.Errorf("parts %s failed %d times; %s", ranges(missing), r.Tries, why)
}
