package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Run queues missing parts and waits until all results are complete.
type Run struct {
	*Job
	Engine Engine
	// Missing returns the parts without results. Done counts the parts with results; it is called
	// often.
	Missing func() ([]int, error)
	Done    func() (int, error)
	// Retries limits how often failed parts are queued again.
	Retries int
	// Run calls Tell with a line after each change, and Progress after each poll of the engine.
	// silent is how long the engine has not answered.
	Tell     func(line string)
	Progress func(done int, t Tasks, silent time.Duration)
	// Interval is the time between two polls of the engine.
	Interval time.Duration

	queued   int            // parts that were missing when the last task began
	waits    map[string]int // number of intervals for which no part has run, by the engine's reason
	gathered bool           // the results of the last task have been copied here
}

// The number of intervals for which Wait waits for a part's result after the task has ended. settle
// applies if the part's log reports a failure, late otherwise: NFS clients may see a new file up to
// a minute late (acdirmax in nfs(5)).
const (
	settle = 5
	late   = 90
)

// Start queues the missing parts, unless parts of an earlier Start are still queued. It reports
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
			r.queued = len(missing)
			return true, nil
		}
		if _, err = r.Engine.Gather(ctx, r.Job); err == nil {
			missing, err = r.Missing()
		}
		if err != nil || len(missing) == 0 {
			return false, err
		}
	}
	r.Tries = 0
	return true, r.submit(ctx, missing)
}

func (r *Run) submit(ctx context.Context, parts []int) error {
	// If the folder is full and the job cannot be recorded, no parts are queued.
	if err := r.write(); err != nil {
		return err
	}
	task, err := r.Engine.Submit(ctx, r.Job, parts)
	if err != nil {
		return err
	}
	r.Job.Engine, r.Task, r.queued = r.Engine.Name(), task, len(parts)
	r.gathered = false
	r.Tries++
	r.Tell(fmt.Sprintf("job %s: %d of %d parts, each at most %s and %d MB", task, len(parts),
		r.Parts, r.Time, r.Memory>>20))
	return r.write()
}

// Wait returns when no part is missing. It queues failed parts again, each time with twice the
// limits. If ctx ends, the parts remain queued.
func (r *Run) Wait(ctx context.Context) error {
	ticker := time.NewTicker(r.Interval)
	defer ticker.Stop()
	answered, idle := time.Now(), 0
	for {
		t, err := r.Engine.Tasks(ctx, r.Job)
		if err == nil && t.Waiting+t.Running == 0 && !r.gathered {
			err = r.gather(ctx)
		}
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
		r.Progress(max(done, t.Done), t, time.Since(answered).Truncate(time.Second))
		r.explain(t)
		if idle == 1 || idle > 0 && idle%settle == 0 {
			next, err := r.ended(ctx, idle)
			if next == finished || err != nil {
				return err
			}
			if next == requeued {
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

// explain prints the reason if no part has run for a while. It prints each reason once.
func (r *Run) explain(t Tasks) {
	if t.Running > 0 || t.Waiting == 0 || t.Reason == "" {
		return
	}
	if r.waits == nil {
		r.waits = map[string]int{}
	}
	if r.waits[t.Reason]++; r.waits[t.Reason] == settle {
		r.Tell(fmt.Sprintf("%d parts wait: %s", t.Waiting, t.Reason))
	}
}

// What Wait does next when the engine has no unfinished tasks.
type next int

const (
	stay next = iota
	requeued
	finished
)

// gather copies the results to this machine if necessary.
func (r *Run) gather(ctx context.Context) error {
	missing, err := r.Missing()
	if err == nil && len(missing) > 0 {
		r.gathered, err = r.Engine.Gather(ctx, r.Job)
	}
	return err
}

// ended checks the results of the engine's last task, a number of intervals after its end. It
// queues parts again if they failed or if their results did not arrive.
func (r *Run) ended(ctx context.Context, idle int) (next, error) {
	missing, err := r.Missing()
	if err != nil {
		return stay, err
	}
	if len(missing) == 0 {
		return finished, nil
	}
	if idle < settle && !r.gathered {
		return stay, nil
	}
	messages, _, failed, logs := r.ReadLogs(missing)
	if idle < late && failed < len(missing) && !r.gathered {
		if idle == settle {
			r.Tell(fmt.Sprintf("%d parts have ended without a result or a message in %s:"+
				" waiting %s, because a shared folder may be slow", len(missing)-failed, r.Dir,
				late*r.Interval))
		}
		return stay, nil
	}
	// At most the part that was measured has run here.
	if logs == 0 && !r.gathered && len(missing) == r.queued && r.queued >= r.Parts-1 {
		return stay, fmt.Errorf("no part of job %s wrote a result or a message to %s: check"+
			" that all machines share this folder, or choose one with -o DIR", r.Task, r.Dir)
	}
	if r.Tries > r.Retries {
		why := "they left no message: the batch system may have ended them, or a machine does" +
			" not share " + r.Dir
		if len(messages) > 0 {
			why = messages[0]
		}
		return stay, fmt.Errorf("parts %s failed %d times; %s", ranges(missing), r.Tries, why)
	}
	before := *r.Job
	text := fmt.Sprintf("%d parts failed and are queued again", len(missing))
	r.Tell(strings.Join(append([]string{text}, messages...)[:min(2, 1+len(messages))], "; "))
	r.Time *= 2
	r.Memory *= 2
	err = r.submit(ctx, missing)
	if errors.Is(err, ErrSilent) { // try again later
		*r.Job, err = before, nil
	}
	return requeued, err
}
