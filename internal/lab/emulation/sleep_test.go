package emulation

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Threads that sleep in the kernel take no processor from the arm.
func TestSpareProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	undo := spareProcessors()
	assert.Equal(t, before+sleepingThreads, runtime.GOMAXPROCS(0))
	undo()
	assert.Equal(t, before, runtime.GOMAXPROCS(0))
}

// until records how late each sleep ended. It does not sleep if the time is already over.
func TestArmSleeps(t *testing.T) {
	var r armSleeps
	ctx, cancel := context.WithCancel(t.Context())
	assert.True(t, r.until(ctx, time.Now()))
	assert.Zero(t, r.lateness())
	for range 3 {
		assert.True(t, r.until(ctx, time.Now().Add(time.Millisecond)))
	}
	got := r.lateness()
	assert.EqualValues(t, 3, got.Count)
	assert.GreaterOrEqual(t, got.Max, got.P50)
	cancel()
	assert.False(t, r.until(ctx, time.Now().Add(time.Hour)))
	assert.False(t, r.until(ctx, time.Now()))
	assert.EqualValues(t, 3, r.lateness().Count)
}
