package congestion

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// TestControllersWithRandomEvents checks that after any sequence of events the window is at least a
// segment and at most its bound, and the pacing rate is not negative.
func TestControllersWithRandomEvents(t *testing.T) {
	for _, name := range Names() {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 5))
			mss := 48 + r.IntN(9000)
			most := mss * (10 + r.IntN(1000))
			c, err := New(name, Config{
				MSS: mss, InitialWindow: mss * (1 + r.IntN(10)), MaxWindow: most, Seed: seed,
				SACK: r.IntN(2) == 0, Paced: r.IntN(2) == 0,
				SRTT: time.Duration(r.Int64N(2)) * time.Duration(r.Int64N(int64(time.Second))),
			})
			require.NoError(t, err)
			now, delivered := clock.Time(time.Hour), uint64(0)
			for i := range 2000 {
				if r.IntN(500) == 0 {
					mss = max(48, mss-r.IntN(mss))
				}
				now = now.Add(time.Duration(r.Int64N(int64(time.Millisecond) << r.IntN(14))))
				sendEvent(r, c, now, mss, &delivered)
				if c.Cwnd() < mss || c.Cwnd() > most || c.Ssthresh() < 0 || c.PacingRate() < 0 {
					require.Fail(t, "out of bounds", "%s, seed %d, step %d: %d of %d to %d, %d, %d",
						name, seed, i, c.Cwnd(), mss, most, c.Ssthresh(), c.PacingRate())
				}
			}
		}
	}
}

// sendEvent sends a random event to a controller.
func sendEvent(r *rand.Rand, c Controller, now clock.Time, mss int, delivered *uint64) {
	flight := r.IntN(2*c.Cwnd() + 1)
	switch r.IntN(20) {
	case 0:
		c.OnLoss(&Loss{
			Now: now, Kind: Kind(r.IntN(4)), FlightSize: flight, MSS: mss,
			InFlight: min(flight/2, max(c.Cwnd()-mss, 0)),
		})
	case 1:
		c.OnExit(&Exit{Now: now, InFlight: flight, MSS: mss, Spurious: r.IntN(3) == 0})
	case 2:
		if x, ok := c.(Restarter); ok {
			x.OnRestart(&Restart{
				Now: now, Idle: time.Duration(r.Int64N(1e10)), RTO: time.Second, MSS: mss,
			})
		}
	case 3:
		if x, ok := c.(LossWatcher); ok {
			x.OnSegmentLost(&LostSegment{
				Now: now, Seq: r.Uint64N(1e6), Size: mss, TxInFlight: flight + mss,
				LostSince: r.IntN(flight+mss) + 1, TotalDelivered: *delivered,
			})
		}
	default:
		n := r.IntN(50*mss) + 1
		*delivered += uint64(n)
		rtt := time.Duration(r.Int64N(3)) * time.Duration(r.Int64N(int64(time.Second)))
		c.OnAck(&Ack{
			Now: now, Delivered: n, Prior: flight, InFlight: flight / 2, MSS: mss,
			RTT: rtt, SRTT: rtt, TotalDelivered: *delivered,
			Rate: r.Int64N(2) * r.Int64N(1e9), AppLimited: r.IntN(3) == 0,
			PriorDelivered: *delivered - min(*delivered, r.Uint64N(uint64(flight+n))),
			TxInFlight:     flight, LostSince: r.IntN(flight/10 + 1), Round: r.IntN(5) == 0,
			CwndLimited: r.IntN(3) > 0, Recovering: r.IntN(5) == 0,
		})
	}
}
