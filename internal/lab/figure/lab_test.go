package figure

import (
	"math/rand/v2"
	"time"
)

// sawtooth returns samples like those of a Reno sender: additive increase, halving at each loss,
// and occasional timeouts. The seed is fixed.
func sawtooth(bytes, loss float64) []Sample {
	const mss, rtt = 1360.0, 350e-6
	rng := rand.New(rand.NewPCG(1, 2))
	var samples []Sample
	s := Sample{Seconds: 3, SID: 1, Cwnd: 10 * mss, Ssthresh: 1 << 31, MinRTT: 120 * time.Microsecond}
	recovering := 0.0
	for s.Acked < bytes {
		s.Seconds += rtt * mss / s.Cwnd
		s.Acked += mss
		s.InFlight = s.Cwnd * (0.9 + 0.1*rng.Float64())
		s.Sent = max(s.Sent, s.Acked+s.InFlight)
		s.RTT = time.Duration((0.8 + 0.4*rng.Float64()) * rtt * 1e9)
		switch r := rng.Float64(); {
		case r < loss/200:
			s.Timeouts++
			s.Retransmits++
			s.Ssthresh, s.Cwnd = max(s.Cwnd/2, 2*mss), mss
			s.Seconds += 0.004
			s.RTT *= 2
		case r < loss:
			s.Retransmits++
			if s.Acked > recovering {
				s.Ssthresh = max(s.Cwnd/2, 2*mss)
				s.Cwnd = s.Ssthresh
				recovering = s.Sent
			}
		case s.Cwnd < s.Ssthresh:
			s.Cwnd += mss
		default:
			s.Cwnd += mss * mss / s.Cwnd
		}
		samples = append(samples, s)
	}
	return samples
}
