package batch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Need is the measured time and memory of one run.
type Need struct {
	Time   time.Duration
	Memory int64 // in bytes; 0: unknown on this system
}

// Measure runs the job's program with these arguments, as a task does. It returns the time and
// memory used.
func (j *Job) Measure(ctx context.Context, args []string) (Need, error) {
	c := exec.CommandContext(ctx, j.Program(), args...) //nolint:gosec // our own program
	var output bytes.Buffer
	c.Stderr = &output
	began := time.Now()
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return Need{}, context.Cause(ctx)
		}
		return Need{}, fmt.Errorf("the first run failed: %s",
			cmp.Or(strings.TrimSpace(output.String()), err.Error()))
	}
	return Need{time.Since(began), maxMemory(c.ProcessState)}, nil
}

const (
	// Up to manyParts parts have one run each. Beyond that, a part lasts at least shortPart,
	// because a batch system takes about a second to start one.
	manyParts = 256
	shortPart = time.Minute
)

// Divide chooses the number of parts, at most limit (0: any number). It also chooses their limits,
// four times the measured time and twice the memory, because other cells may need more than the
// measured one.
func (j *Job) Divide(runs, limit int, n Need) {
	if j.Parts == 0 {
		j.Parts = runs
		if runs > manyParts {
			each := max(1, int(shortPart/max(n.Time, time.Millisecond)))
			j.Parts = max(manyParts, (runs+each-1)/each)
		}
		if limit > 0 {
			j.Parts = min(j.Parts, limit)
		}
	}
	each := int64((runs + j.Parts - 1) / j.Parts)
	if j.Time == 0 {
		j.Time = (time.Duration(4*int64(n.Time)*each) + 2*time.Minute - 1).Truncate(time.Minute)
	}
	if j.Memory == 0 {
		const unit = 64 << 20
		j.Memory = (max(2*n.Memory, 4*unit) + 2*unit - 1) / unit * unit
	}
}
