package tcp

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

func FuzzParseHeader(f *testing.F) {
	syn := Header{Seq: 1, Flags: SYN, Options: Options{MSS: 1360, SACKPermitted: true, HasWindowScale: true, WindowScale: 7}}
	sack := Header{Seq: 1, Ack: 2, Flags: ACK, Options: Options{SACKCount: 4, SACK: [4]SACKBlock{{1, 2}, {3, 4}}}}
	for _, h := range []Header{{}, syn, sack} {
		b := make([]byte, h.Size())
		h.Put(b, 80, 81)
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		src, dst, h, payload, ok := ParseHeader(b)
		if !ok {
			return
		}
		require.LessOrEqual(t, len(payload)+HeaderSize, len(b))
		if h.Size() > 60 {
			return // repeated options may not fit into the header
		}
		out := make([]byte, h.Size())
		h.Put(out, src, dst)
		src2, dst2, again, _, ok := ParseHeader(out)
		require.True(t, ok)
		require.Equal(t, h, again)
		require.Equal(t, [2]uint16{src, dst}, [2]uint16{src2, dst2})
	})
}

// fuzzStates bring a host into the state in which the fuzzer starts.
var fuzzStates = []func(s *script){
	func(s *script) { s.listen(4) },
	func(s *script) { s.connect(); s.collect() },
	func(s *script) { s.listen(4); s.send(SYN, 0, 0, 0, fullOptions); s.collect() },
	func(s *script) { s.accept(fullOptions) },
	func(s *script) { s.accept(Options{}); s.write(30000); s.collect() },
	func(s *script) { s.accept(fullOptions); s.write(30000); s.collect() },
	func(s *script) { s.accept(fullOptions); _ = s.c.CloseWrite(s.now); s.collect() },
	func(s *script) {
		s.accept(fullOptions)
		_ = s.c.CloseWrite(s.now)
		s.collect()
		s.send(ACK, 1, 2, 0)
	},
	func(s *script) { s.accept(fullOptions); s.send(FIN|ACK, 1, 1, 0); s.write(5000); s.collect() },
	func(s *script) {
		s.accept(fullOptions)
		_ = s.c.CloseWrite(s.now)
		s.collect()
		s.send(FIN|ACK, 1, 1, 0)
	},
	func(s *script) { s.accept(fullOptions); s.send(FIN|ACK, 1, 1, 0); s.c.Close(s.now); s.collect() },
	func(s *script) {
		s.accept(fullOptions)
		_ = s.c.CloseWrite(s.now)
		s.collect()
		s.send(FIN|ACK, 1, 2, 0)
	},
	func(s *script) { s.accept(fullOptions); s.sendWindow(ACK, 1, 1, 0, 0); s.write(100); s.collect() },
	func(s *script) { s.acceptAll(); s.write(30000); s.collect() },
	func(s *script) { s.h.cfg.SynCookies = CookiesAlways; s.listen(4); s.send(SYN, 0, 0, 0, allOptions) },
	func(s *script) {
		s.acceptAll()
		_ = s.c.CloseWrite(s.now)
		s.collect()
		s.send(FIN|ACK, 1, 2, 0, stamp(1001, 1))
		s.wait(time.Second)
	},
}

// allOptions are the options of a SYN that offers everything.
var allOptions = Options{
	MSS: 1000, SACKPermitted: true, HasWindowScale: true, HasTimestamps: true, TSVal: 1000,
}

// acceptAll establishes a connection with timestamps and ECN.
func (s *script) acceptAll() {
	s.listen(8)
	s.send(SYN|ECE|CWR, 0, 0, 0, allOptions)
	s.collect()
	s.send(ACK, 1, 1, 0, stamp(1000, 1))
	s.c, _ = s.l.Accept()
	s.out = nil
}

// FuzzInput sends segments from the fuzzer, close to the segments that the connection expects, to a
// host in each state. The host must not panic, must respect its memory limits, and must keep its
// state consistent.
func FuzzInput(f *testing.F) {
	for i := range fuzzStates {
		f.Add(uint8(i), []byte{0x10, 1, 1, 0, 200, 3, 0x12, 0, 1, 7, 0, 9, 0x14, 2, 0, 1, 1, 1})
		f.Add(uint8(i), []byte{0x11, 1, 1, 10, 0, 0, 0x02, 0, 0, 0, 255, 0, 0x10, 200, 30, 90, 50, 20})
	}
	f.Fuzz(func(t *testing.T, state uint8, ops []byte) {
		s := newScript(t, Config{
			Limits: Limits{MaxReceiveRanges: 8}, Buffers: Buffers{Recv: 20000, Send: 50000},
		})
		fuzzStates[int(state)%len(fuzzStates)](s)
		for ; len(ops) >= 6; ops = ops[6:] {
			s.fuzzOne(ops)
		}
		s.wait(time.Second)
		s.verify()
		s.wait(time.Hour)
	})
}

// fuzzOne turns six bytes into a segment or a user call.
func (s *script) fuzzOne(op []byte) {
	// Most offsets are small. A few are arbitrary.
	near := func(b byte) uint32 { return uint32(int32(int8(b)) * int32(1+op[5]%8) * 37) }
	seq, ack := near(op[1]), near(op[2])
	if c := s.c; c != nil {
		seq += uint32(c.rcv.nxt) - s.peer
		ack += uint32(c.snd.Una) - s.iss
	}
	if op[5]&0xf0 == 0xf0 {
		seq, ack = seq*0x01010101, ack*0x10101010
	}
	var o Options
	if op[5]&8 != 0 {
		o = Options{MSS: uint16(op[3]) << 4, SACKPermitted: op[4]&1 != 0, HasWindowScale: op[4]&2 != 0, WindowScale: op[4] % 15}
	}
	if op[5]&0x10 != 0 {
		for i := range uint32(op[4] % 5) {
			from := s.iss + ack + near(op[3]+byte(i*17))
			o.SACK[o.SACKCount] = SACKBlock{from, from + uint32(op[4])*(1+i)}
			o.SACKCount++
		}
	}
	switch op[0] >> 5 {
	case 7:
		s.user(op)
	default:
		if op[5]&0x20 != 0 || s.c != nil && s.c.hs.has(hsStamps) && op[5]&0x40 == 0 {
			o.HasTimestamps, o.TSVal, o.TSEcr = true, 1000+near(op[1])/37, uint32(op[2])*0x01010101
			if s.c != nil {
				o.TSVal = s.c.stamps.recent + uint32(int32(int8(op[4])>>5))
			}
			o.SACKCount = min(o.SACKCount, 3)
		}
		g := s.segment(Flags(op[0]), seq, ack, int(op[3])*int(1+op[4]%16), uint16(op[4])<<8, o)
		g.Urgent = uint16(op[1]) << (op[2] % 9)
		g.ECN = ECN(op[4]) & CE
		s.h.Input(s.now, &g)
	}
	s.collect()
	s.out = nil
	s.now = s.now.Add(time.Duration(op[4]) * 100 * time.Microsecond)
	if s.h.Deadline().Due(s.now) {
		s.h.Advance(s.now)
	}
	s.verify()
}

func (s *script) user(op []byte) {
	if s.c == nil {
		return
	}
	switch op[1] % 8 {
	case 0:
		s.c.Close(s.now)
	case 1:
		s.c.CloseRead(s.now)
	case 2:
		_ = s.c.CloseWrite(s.now)
	case 3:
		s.c.Abort(s.now)
	case 4:
		b := make([]byte, int(op[2])*10)
		s.c.Rx().Read(b)
		s.c.Consumed(s.now)
	case 5:
		s.path.MTU = 100 + int(op[2])*10
		s.h.Rerouted()
	default:
		if !s.c.snd.closed {
			s.c.Tx().Write(make([]byte, int(op[2])*10))
			s.c.Wrote(s.now)
		}
	}
}

// verify checks the invariants that hold between any two calls.
func (s *script) verify() {
	s.t.Helper()
	require.LessOrEqual(s.t, s.h.numConns(), 80)
	verify(s.t, s.h)
}

// verify checks a host's invariants.
//
//nolint:thelper // the failed check is more useful than the caller
func verify(tb testing.TB, h *Host) {
	verifyHalfOpen(tb, h)
	early := 0
	for c := h.all.first; c != nil; c = c.links.in[inAll].next {
		if c.snd.rec.Idle() {
			verifyIdle(tb, c)
			continue
		}
		equal(tb, c.rcv.reach(), c.rcv.reassembly.held)
		early += c.rcv.reassembly.held
		atMost(tb, c.snd.Una, c.snd.Nxt)
		atMost(tb, c.rcv.reassembly.ooo.Len(), h.cfg.Limits.MaxReceiveRanges)
		atMost(tb, c.rcv.rx.Len(), h.cfg.Buffers.Recv)
		atMost(tb, c.rcv.nxt, c.rcv.offeredEdge()+1)
		if c.state.synchronized() && !c.snd.rec.Record.Empty() && c.snd.path.Outlet >= 0 {
			holds(tb, clock.Earliest(c.snd.rec.At.RTO, c.snd.persist.at) != clock.Never,
				"a timer is set for the case that no answer arrives")
		}
		holds(tb, c.deadline() == clock.Never || c.links.heap >= 0, "its deadline is in the heap")
		holds(tb, c.links.heap < 0 || h.deadlines.of(c) <= c.deadline() || c.deadline() == 0,
			"its key is no later than its deadline")
	}
	equal(tb, early, h.receivers.held)
	atMost(tb, early, h.cfg.Limits.EarlyBytes)
}

// verifyIdle checks that a connection without send or receive state has no data that would need it.
//
//nolint:thelper // as verify
func verifyIdle(tb testing.TB, c *Conn) {
	holds(tb, c.rcv.reassembly == nil, "nothing is reassembled")
	holds(tb, c.snd.rec.Idle(), "recovery is idle")
	if !c.state.synchronized() {
		return
	}
	equal(tb, c.snd.Nxt, c.snd.Una, "nothing is in flight")
	holds(tb, c.snd.unsent() == 0 || c.snd.path.Outlet < 0 || c.links.isReady,
		"a connection with unsent data is scheduled")
	equal(tb, clock.Never, c.rcv.ack.timer)
	equal(tb, recovery.Timers{}, c.snd.rec.At)
	equal(tb, clock.Never, c.snd.persist.at)
}

// These check like the functions of package require. They cost nothing where the condition holds,
// because a world checks its connections at every step. Helper takes a stack trace, so only a
// failure calls it.

//nolint:thelper // see above
func holds(tb testing.TB, ok bool, invariant string) {
	if !ok {
		tb.Helper()
		require.Fail(tb, invariant)
	}
}

//nolint:thelper // see above
func equal[T comparable](tb testing.TB, want, got T, invariant ...any) {
	if want != got {
		tb.Helper()
		require.Equal(tb, want, got, invariant...)
	}
}

//nolint:thelper // see above
func atMost[T cmp.Ordered](tb testing.TB, got, limit T) {
	if got > limit {
		tb.Helper()
		require.LessOrEqual(tb, got, limit)
	}
}

// TestRandomSegments is FuzzInput with a fixed random source and a longer run.
func TestRandomSegments(t *testing.T) {
	n := 20 * *seeds
	if n == 0 {
		n = fewer(1500)
	}
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s := newScript(t, Config{
			Knobs: Knobs{
				Recovery: Recovery{
					Strategy: Recoveries()[seed/5%4], RTOMin: time.Millisecond,
					InitialWindow: 1 + int(seed%30),
				},
				OptionsOff: seed%5 == 0,
			},
			Limits: Limits{MaxReceiveRanges: 8}, Buffers: Buffers{Recv: 20000, Send: 50000},
		})
		fuzzStates[rng.IntN(len(fuzzStates))](s)
		op := make([]byte, 6)
		for range 100 {
			for i := range op {
				op[i] = byte(rng.Uint32())
			}
			if rng.IntN(4) > 0 {
				op[0] = byte(ACK) // mostly plain ACKs, because connections soon end otherwise
			}
			if rng.IntN(3) > 0 {
				op[1], op[2] = byte(rng.IntN(3)), byte(rng.IntN(40))
			}
			s.fuzzOne(op)
		}
		s.wait(time.Second)
		s.verify()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
