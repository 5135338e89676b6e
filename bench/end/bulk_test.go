//go:build linux

package end

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestWrongCountsBadBytes(t *testing.T) {
	at := int64(3*period - 1000)
	right := append(append([]byte(nil), pattern[period-1000:period]...), pattern[:3000]...)
	assert.Zero(t, wrong(right, at), "a read across the pattern's end")
	assert.Positive(t, wrong(right, at+8), "eight bytes are missing")
	assert.Positive(t, wrong(right, at-1), "one byte arrived twice")
	right[len(right)-1] ^= 1
	assert.Equal(t, int64(1), wrong(right, at))
	assert.Zero(t, wrong(nil, at))
}

func TestMeterSkipsItsWarmUp(t *testing.T) {
	m := meter{span: time.Nanosecond}
	assert.False(t, m.add(100), "the first bytes begin the warm-up")
	assert.False(t, m.add(10), "the warm-up ends at once")
	assert.True(t, m.add(1))
	assert.False(t, m.add(1), "the end is reported once")
	assert.Equal(t, int64(112), m.all)
	assert.Equal(t, int64(1), m.bytes)
	assert.Positive(t, m.took)
}
