package chaos_test

import (
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// drawTCP draws a host's TCP configuration: buffers down to the minimum size, all algorithms, all
// knobs, short and long timeouts.
func drawTCP(r *rand.Rand, seed uint64) tcp.Config {
	sizes := []int{64, 100, 536, 1000, 5000, 20_000, 65_535, 200_000, 1 << 20}
	cfg := tcp.Config{
		Buffers: tcp.Buffers{
			Recv: sizes[r.IntN(len(sizes))], Send: sizes[r.IntN(len(sizes))],
		},
		TrainSegments: 1 + r.IntN(44),
		MSL:           time.Duration(1+r.IntN(30)) * time.Second,
		FinWait2:      time.Duration(1+r.IntN(60)) * time.Second,
	}
	k := &cfg.Knobs
	const ms = time.Millisecond
	k.Recovery.RTOMin = []time.Duration{0, ms, 50 * ms, 200 * ms}[r.IntN(4)]
	k.Recovery.RTOMax = []time.Duration{0, 1000 * ms, 5000 * ms, 120_000 * ms}[r.IntN(4)]
	k.Recovery.InitialWindow = 1 + r.IntN(20)
	if r.IntN(2) == 0 {
		k.DelayedAck = time.Duration(r.IntN(100)) * time.Millisecond
	}
	algorithms := tcp.Algorithms()
	k.Recovery.Congestion = algorithms[r.IntN(len(algorithms))]
	recoveries := tcp.Recoveries()
	k.Recovery.Strategy = recoveries[stream(seed, "Recovery").IntN(len(recoveries))]
	drawSwitches(reflect.ValueOf(k).Elem(), seed)
	k.ECN = []tcp.ECNMode{tcp.ECNPassive, tcp.ECNOn, tcp.ECNOff}[stream(seed, "ECN").IntN(3)]
	if stream(seed, "SynCookies").IntN(4) == 0 {
		k.SynCookies = tcp.CookiesAlways
	}
	cfg.Retries.Syn = 3 + r.IntN(20)
	cfg.Retries.Data = 3 + r.IntN(40)
	cfg.Retries.Fin = 3 + r.IntN(40)
	if r.IntN(4) == 0 {
		cfg.Limits.MaxReceiveRanges = 1 + r.IntN(8)
	}
	if r.IntN(2) == 0 { // start near the largest number, so that sequence numbers wrap
		next := -uint32(r.IntN(100_000))
		cfg.Sequence = func(tcp.Tuple) uint32 {
			next += 1 << 20 // two connections do not overlap, as with the clock of RFC 9293 §3.4.1
			return next - 1<<20
		}
	}
	return cfg
}

// drawSwitches sets each knob of type bool with some probability. It finds them by their type, so
// it includes knobs that are added later. Each knob has its own random stream, so a new knob does
// not change the others.
func drawSwitches(knobs reflect.Value, seed uint64) {
	const share = 0.15
	for i := range knobs.NumField() {
		switch f := knobs.Field(i); f.Kind() {
		case reflect.Struct:
			drawSwitches(f, seed)
		case reflect.Bool:
			f.SetBool(stream(seed, knobs.Type().Field(i).Name).Float64() < share)
		default:
		}
	}
}

func stream(seed uint64, knob string) *rand.Rand {
	name := fnv.New64a()
	_, _ = name.Write([]byte(knob)) // never fails
	return rand.New(rand.NewPCG(seed, name.Sum64()))
}
