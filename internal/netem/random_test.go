package netem_test

import (
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// randomPacket returns a packet of one of several flows, some of them ECN-capable, or a packet that
// is not IP.
func randomPacket(r *rand.Rand, n uint64) []byte {
	if size := 1 + r.IntN(1500); size < 40 {
		return make([]byte, size)
	}
	b := ipv4(byte(r.IntN(4)), 40+r.IntN(1460))
	b[21] = byte(n % 7) // low byte of a port
	return b
}

// randomConfig draws the configuration of a link with any of the features.
func randomConfig(r *rand.Rand) netem.Config {
	share := func() float64 { return max(0, r.Float64()*0.6-0.3) }
	cfg := netem.Config{
		Delay:     time.Duration(r.IntN(3)) * 100 * time.Microsecond,
		Duplicate: share(), Truncate: share(), Overtaking: r.IntN(2) == 0,
		Corrupt:    netem.Corrupt{Share: share(), Bits: r.IntN(4), Where: netem.Region(r.IntN(3))},
		Reorder:    netem.Reorder{Share: share(), Late: time.Duration(r.IntN(2)) * time.Millisecond},
		MaxPackets: r.IntN(2) * (20 + r.IntN(100)), Overhead: r.IntN(2) * r.IntN(100),
		Loss: randomLoss(r, share()), Jitter: randomJitter(r),
	}
	if r.IntN(3) == 0 {
		cfg.Policer = &netem.Policer{
			Rate: netem.BitsPerSecond(1e6 + r.Int64N(1e8)), Burst: 1 + r.IntN(30_000), Mark: r.IntN(2) == 0,
		}
	}
	if cfg.Rate = randomRate(r); cfg.Rate != nil {
		cfg.Queue = randomQueue(r)
	}
	return cfg
}

func randomLoss(r *rand.Rand, share float64) netem.Loss {
	switch r.IntN(10) {
	case 0:
		return netem.UniformLoss(share)
	case 1:
		return netem.Bursts(0.1, 4)
	case 2:
		return netem.PeriodicLoss{Every: 5, First: r.Uint64N(3)}
	case 3:
		return netem.ListedLoss{2, 3, 40}
	case 4:
		return netem.ByteLoss{0, 1, 5000, 70_000}
	case 5:
		return netem.FourStates{P13: 0.1, P31: 0.3, P32: 0.2, P23: 0.5, P14: share}
	case 6:
		return netem.ByTime{
			Windows: []netem.Window{{From: time.Millisecond, To: 2 * time.Millisecond, Share: share}},
			Every:   time.Duration(2+r.IntN(5)) * time.Millisecond,
		}
	case 7:
		return netem.OnOff{
			On: 1 + time.Duration(r.IntN(1e7)), Off: time.Duration(r.IntN(1e7)), Poisson: r.IntN(2) == 0,
		}
	case 8:
		return netem.CorrelatedLoss{Share: share, Correlation: 0.5}
	}
	return nil
}

func randomJitter(r *rand.Rand) netem.Jitter {
	size := time.Duration(r.IntN(300_000))
	switch r.IntN(7) {
	case 0:
		return netem.UniformJitter(size)
	case 1:
		return netem.NormalJitter(size)
	case 2:
		return netem.RandomJitter{Size: size, Shape: "pareto"}
	case 3:
		return netem.RandomJitter{Size: size, Shape: "paretonormal"}
	case 4:
		return netem.RandomJitter{Size: size, Table: []int16{-8192, 0, 0, 32767}}
	case 5:
		return netem.DelayTrace{
			Points: []netem.DelayPoint{{0, size}, {time.Millisecond, -size}, {2 * time.Millisecond, 3 * size}},
		}
	}
	return nil
}

func randomRate(r *rand.Rand) netem.Rate {
	speed := func() netem.BitsPerSecond { return netem.BitsPerSecond(1e6 + r.Int64N(1e8)) }
	switch r.IntN(7) {
	case 0:
		return speed()
	case 5:
		return netem.Slots{
			Min: time.Duration(r.IntN(500_000)), Max: time.Duration(r.IntN(1_000_000)),
			Packets: r.IntN(2) * r.IntN(10), Bytes: r.IntN(2) * r.IntN(10_000),
		}
	case 6:
		return netem.Cells{Rate: speed(), Size: 1 + r.IntN(500), Overhead: r.IntN(20)}
	case 1:
		return netem.Schedule{
			Steps: []netem.Step{{0, speed()}, {time.Millisecond, 0}, {1500 * time.Microsecond, speed()}},
			Every: time.Duration(r.IntN(2)) * (2*time.Millisecond + time.Duration(r.IntN(1e6))),
		}
	case 2:
		trace := poisson(r.Uint64(), 1+r.IntN(100), 300*time.Microsecond)
		trace[len(trace)-1] += time.Millisecond
		return netem.Opportunities{At: trace, Once: r.IntN(4) == 0}
	case 3:
		trace := make([]time.Duration, 1+r.IntN(50))
		for i := range trace {
			trace[i] = time.Duration(i)*time.Duration(r.IntN(1000)) + time.Microsecond
			if i > 0 {
				trace[i] = max(trace[i], trace[i-1])
			}
		}
		return netem.Opportunities{At: trace}
	}
	return nil
}

func randomQueue(r *rand.Rand) netem.Discipline {
	packets, ecn := 1+r.IntN(50), r.IntN(2) == 0
	switch r.IntN(10) {
	case 0:
		return netem.DropTail{Packets: packets}
	case 1:
		return netem.DropTail{Time: 1 + time.Duration(r.IntN(1e7)), Bytes: r.IntN(2) * 1000 * packets}
	case 2:
		return netem.DropHead{Packets: packets}
	case 3:
		return netem.DropHead{Bytes: 100 * packets}
	case 4:
		return netem.CoDel{Packets: packets, Target: 200_000, Interval: 1_000_000, ECN: ecn}
	case 5:
		return netem.FQCoDel{
			Packets: packets, Target: 200_000, Interval: 1_000_000, ECN: ecn, Flows: 1 + r.IntN(20),
		}
	case 6:
		return netem.RED{
			Min: 1000, Max: 10_000, Bytes: 1500 * packets, Weight: 0.1, Abrupt: r.IntN(2) == 0, ECN: ecn,
		}
	case 7:
		return netem.RED{Min: 1, Max: 5, InPackets: true, Packets: packets, Weight: 0.2, ECN: ecn}
	case 8:
		return netem.PIE{
			Packets: packets, Target: 1_000_000, Update: 300_000, Burst: 1_000_000, ECN: ecn,
			Alpha: 5, Beta: 50, Timestamps: r.IntN(2) == 0,
		}
	}
	return nil
}
