package rdt

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// The estimate of RFC 6298 §2 is compared with a computation in floating point.
func TestEstimate(t *testing.T) {
	cfg := Config{Adaptive: true}.WithDefaults()
	to := newTimeout(&cfg)
	assert.Equal(t, time.Second, to.current, "before there is a measurement")
	var srtt, rttvar float64
	for i, ms := range []int64{100, 120, 80, 300, 100, 100, 90, 110} {
		rtt := time.Duration(ms * 1e6)
		to.sample(rtt)
		x := float64(rtt)
		if i == 0 {
			srtt, rttvar = x, x/2
		} else {
			rttvar = .75*rttvar + .25*math.Abs(srtt-x)
			srtt = .875*srtt + .125*x
		}
		assert.InDelta(t, srtt, to.srtt, 100)
		assert.InDelta(t, srtt+4*rttvar, to.current, 1000)
	}
}

// RFC 6298 §5.5: the timer backs off once if a whole window is lost, up to a limit.
func TestTimeoutDoublesOncePerWindow(t *testing.T) {
	cfg := Config{Adaptive: true, Timeout: 100, MinTimeout: 10, MaxTimeout: 350}.WithDefaults()
	to := newTimeout(&cfg)
	for sent := range clock.Time(5) {
		to.expired(200+sent, 100+sent)
	}
	assert.Equal(t, time.Duration(200), to.current)
	to.expired(500, 210)
	assert.Equal(t, time.Duration(350), to.current)
	to.sample(1)
	assert.Equal(t, time.Duration(10), to.current)

	cfg.Adaptive = false
	to = newTimeout(&cfg)
	to.expired(200, 100)
	to.sample(1)
	assert.Equal(t, time.Duration(100), to.current, "a fixed one is fixed")
}
