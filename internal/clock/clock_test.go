package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/clock"
)

func TestEarliestIgnoresNever(t *testing.T) {
	assert.Equal(t, clock.Never, clock.Earliest())
	assert.Equal(t, clock.Never, clock.Earliest(clock.Never, clock.Never))
	assert.Equal(t, clock.Time(3), clock.Earliest(clock.Never, 7, 3, clock.Never, 5))
}

func TestDue(t *testing.T) {
	assert.False(t, clock.Never.Due(10), "never is not due")
	assert.True(t, clock.Time(10).Due(10))
	assert.False(t, clock.Time(11).Due(10))
}

func TestArithmetic(t *testing.T) {
	start := clock.Time(5)
	assert.Equal(t, time.Second, start.Add(time.Second).Sub(start))
	assert.Equal(t, clock.Time(12), start.Later(7))
	assert.Equal(t, clock.Time(6), start.Later(0), "a wait is never over at once")
}
