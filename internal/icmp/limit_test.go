package icmp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
)

// take takes all tokens that are available at the time now, and returns their number.
func take(b *icmp.Bucket, now clock.Time) (n int) {
	for n < 1000 && b.Take(now) {
		n++
	}
	return n
}

// RFC 1812 §4.3.2.8: a bucket permits a burst, then a number of messages per second, and a burst
// again after a pause.
func TestBucket(t *testing.T) {
	var b icmp.Bucket
	now := clock.Time(1)
	assert.Equal(t, 50, take(&b, now), "the default burst")
	assert.Zero(t, take(&b, now.Add(time.Millisecond-1)))
	assert.Equal(t, 1, take(&b, now.Add(time.Millisecond)), "the default rate")
	assert.Equal(t, 50, take(&b, now.Add(time.Hour)), "the bucket holds no more than a burst")

	b.SetLimit(icmp.Limit{Rate: 2, Burst: 3})
	now = now.Add(time.Hour)
	assert.Zero(t, take(&b, now))
	assert.Equal(t, 1, take(&b, now.Add(500*time.Millisecond)))
	assert.Equal(t, 2, take(&b, now.Add(1500*time.Millisecond)))
	assert.Equal(t, 3, take(&b, now.Add(time.Minute)))
	b.SetLimit(icmp.Limit{Rate: -1})
	assert.Equal(t, 1000, take(&b, now), "no limit")
}
