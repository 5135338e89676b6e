package tcp

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// verifyHalfOpen checks the invariants of the half-open connections.
//
//nolint:thelper // as verify
func verifyHalfOpen(tb testing.TB, h *Host) {
	of := map[*Listener]int{}
	n := 0
	for o := h.half.first; o != nil; o = o.next {
		equal(tb, o, h.half.byTuple[o.tuple])
		equal(tb, o, h.half.byDue[o.place])
		holds(tb, h.conns.find(&o.tuple) == nil, "the tuple has no other connection")
		atMost(tb, h.half.deadline(), o.due())
		holds(tb, o.due() != clock.Never, "the half-open connection times out")
		of[o.listener]++
		n++
	}
	equal(tb, n, len(h.half.byTuple))
	equal(tb, n, len(h.half.byDue))
	for c := h.all.first; c != nil; c = c.links.in[inAll].next {
		if c.flags.has(connHalfOpen) {
			of[c.links.listener]++
		}
	}
	for l, n := range of {
		equal(tb, n, l.halfOpen)
	}
	for _, c := range h.half.spare {
		holds(tb, c.snd.rec.Idle(), "recovery is idle")
		holds(tb, c.links.heap < 0, "no deadline is in the heap")
		equal(tb, 0, c.snd.tx.Tail()+c.rcv.rx.Tail(), "the connection has never had data")
	}
}

func TestHalfOpenConnectionFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(halfOpen{}), uintptr(176))
}

// RFC 4987 §3.2: a SYN allocates only the small half-open connection and its places in the table
// and the heap.
func TestRFC4987_3_2_HalfOpenIsSmall(t *testing.T) {
	const n = 10_000
	s := newScript(t, Config{Limits: Limits{SynBacklog: n}})
	s.listen(n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	o := fullOptions
	o.HasTimestamps, o.TSVal = true, 1
	for i := range n {
		s.tuple.RemotePort = uint16(10000 + i)
		s.send(SYN, 0, 0, 0, o)
		s.collect()
		require.Len(t, s.out, 1)
		s.out = s.out[:0]
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Equal(t, n, s.l.halfOpen)
	assert.Len(t, s.h.half.byTuple, n)
	each := (int(after.HeapAlloc) - int(before.HeapAlloc)) / n
	t.Logf("%d bytes each", each)
	assert.Less(t, each, 320)
	verifyHalfOpen(t, s.h)
	s.tuple.RemotePort = 10000 + n/2
	s.send(ACK, 1, 1, 0, stamp(2, 0))
	_, ok := s.l.Accept()
	assert.True(t, ok)
	runtime.KeepAlive(s)
}

// syns are SYNs that offer different options.
var syns = []struct {
	name     string
	flags    Flags
	options  Options
	window   uint16
	sockopts Sockopts
}{
	{name: "plain", flags: SYN, window: 65535},
	{name: "everything", flags: SYN | ECE | CWR, window: 1234, options: Options{
		MSS: 1200, SACKPermitted: true, HasWindowScale: true, WindowScale: 7,
		HasTimestamps: true, TSVal: 77, UserTimeout: 300,
	}},
	{name: "listener options", flags: SYN, window: 0, options: fullOptions, sockopts: Sockopts{
		NoDelay: true, MaxSeg: 700, UserTimeout: 70 * time.Second, AdvertiseTimeout: true,
		Keepalive:  Keepalive{Idle: time.Second},
		RecvBuffer: 40_000, SendBuffer: 50_000, TOS: 0x20, TTL: 9,
	}},
}

// halfOpenEvents are events after which a half-open connection is still half-open.
var halfOpenEvents = []struct {
	name string
	do   func(s *script)
}{
	{"nothing", func(*script) {}},
	{"a retransmitted SYN", func(s *script) { s.send(SYN, 0, 0, 0, stamp(78, 0)) }},
	{"a reset in the window", func(s *script) { s.send(RST, 100, 0, 0) }},
	{"a timeout", func(s *script) { s.wait(1100 * time.Millisecond) }},
	{"four timeouts", func(s *script) { s.wait(16 * time.Second) }},
	{"a late timeout", func(s *script) {
		s.now = s.now.Add(1700 * time.Millisecond)
		s.h.Advance(s.now)
	}},
	{"data without an ACK", func(s *script) { s.send(0, 1, 0, 50, stamp(79, 0)) }},
	{"an old segment", func(s *script) { s.send(ACK, ^uint32(500), 1, 20, stamp(79, 0)) }},
	{"a bad ACK", func(s *script) { s.send(ACK, 1, 9, 0, stamp(79, 0)) }},
	{"an ICMP report", func(s *script) { s.h.Unreachable(s.now, s.tuple, s.iss, ErrUnreachable, false) }},
	{"too big", func(s *script) { s.h.TooBig(s.now, s.tuple, s.iss, 600) }},
}

// TestShrinkAndRestoreKeepTheState shrinks a connection into a half-open one, expands it again, and
// checks that both are equal field by field.
func TestShrinkAndRestoreKeepTheState(t *testing.T) {
	for _, syn := range syns {
		for _, what := range halfOpenEvents {
			t.Run(syn.name+", "+what.name, func(t *testing.T) {
				s := newScript(t, Config{})
				s.listen(4)
				require.NoError(t, s.l.SetSockopts(syn.sockopts))
				s.sendWindow(syn.flags, 0, 0, 0, syn.window, syn.options)
				c := s.h.conns.find(&s.tuple)
				require.NotNil(t, c)
				c.Owner = "owner" // so the host does not shrink the connection
				s.collect()
				what.do(s)
				s.collect()
				require.Same(t, c, s.h.conns.find(&s.tuple))
				require.False(t, s.h.shrinks(c))
				c.Owner = nil
				c.freeState()
				want := *c
				s.h.reschedule(c)
				require.False(t, s.h.Output(s.now, []int{9}, &s.train))
				require.Zero(t, s.h.conns.len())
				o := s.h.half.byTuple[s.tuple]
				require.NotNil(t, o)
				got := s.h.rebuild(s.now, o)
				got.freeState()
				assert.Equal(t, want.snd.tx.Limit(), got.snd.tx.Limit())
				assert.Equal(t, want.rcv.rx.Limit(), got.rcv.rx.Limit())
				if want.keep != nil {
					require.NotNil(t, got.keep)
					assert.Equal(t, want.keep.Keepalive, got.keep.Keepalive)
				}
				for _, c := range []*Conn{&want, got} {
					// Keepalive probing starts again, and its clock starts at the peer's ACK.
					c.keep = nil
					c.snd.tx, c.rcv.rx, c.links = nil, nil, links{}
					c.rcv.ack.quick = 0 // established sets it
				}
				if want.snd.path.search != nil {
					got.snd.path.search.next = want.snd.path.search.next
				}
				assert.Equal(t, want, *got)
				verify(t, s.h)
			})
		}
	}
}

// TestHalfOpenOnTheWire compares a host that shrinks half-open connections with one that does not.
// Both must send the same bytes at the same nanosecond.
func TestHalfOpenOnTheWire(t *testing.T) {
	for seed := range uint64(fewer(300)) {
		cfg := Config{Limits: Limits{SynBacklog: 8}}
		whole, small := newScript(t, cfg), newScript(t, cfg)
		both := []*script{whole, small}
		rng := rand.New(rand.NewPCG(seed, 6))
		for _, s := range both {
			s.listen(4)
			require.NoError(t, s.l.SetSockopts(syns[seed%3].sockopts))
		}
		reduced := 0
		for range 60 {
			syn := syns[rng.IntN(len(syns))]
			act, port := rng.IntN(11), uint16(4000+rng.IntN(6))
			seq, ack := uint32(rng.IntN(4)), uint32(rng.IntN(3))
			later := time.Duration(rng.Int64N(int64(2 * time.Second)))
			flags := []Flags{ACK, ACK, RST, FIN | ACK, SYN | ACK, SYN, ACK | ECE, 0}[rng.IntN(8)]
			n := rng.IntN(2) * rng.IntN(60)
			for _, s := range both {
				s.tuple.RemotePort = port
				switch act {
				case 0, 1, 2, 3:
					s.sendWindow(syn.flags, 0, 0, 0, syn.window, syn.options)
				case 4, 5, 6:
					s.send(flags, seq, ack, n, stamp(80+seq, 0))
				case 7:
					s.advance(later, s == whole)
				case 8:
					s.now = s.now.Add(later) // later than the deadline
					s.h.Advance(s.now)
				case 9:
					halfOpenEvents[int(seq)%2+9].do(s)
				case 10:
					for range seq {
						s.l.Accept()
					}
				}
				s.drain(s == whole)
			}
			reduced += len(small.h.half.byTuple)
			require.Equal(t, whole.out, small.out, "seed %d", seed)
			require.Equal(t, whole.h.Drops(), small.h.Drops(), "seed %d", seed)
			require.Equal(t, whole.h.Counters(), small.h.Counters(), "seed %d", seed)
			require.Equal(t, whole.h.numConns(), small.h.numConns(), "seed %d", seed)
			require.Equal(t, whole.l.halfOpen, small.l.halfOpen, "seed %d", seed)
			verify(t, small.h)
			for _, s := range both {
				s.out = s.out[:0]
			}
		}
		require.Empty(t, whole.h.half.byTuple)
		require.NotZero(t, reduced)
	}
}

// advance advances the clock by d and runs the host's timers on the way.
func (s *script) advance(d time.Duration, whole bool) {
	for until := s.now.Add(d); ; {
		due := s.h.Deadline()
		if due == clock.Never || due > until {
			s.now = until
			return
		}
		s.now = max(s.now, due)
		s.h.Advance(s.now)
		s.drain(whole)
	}
}

// drain is collect for segments of any tuple. It sorts them by tuple and records the time instead
// of the payload.
func (s *script) drain(whole bool) {
	for c := s.h.all.first; whole && c != nil; c = c.links.in[inAll].next {
		c.Owner = "owner" // so the host does not shrink the connection
	}
	n := len(s.out)
	for s.h.Output(s.now, []int{1000}, &s.train) {
		t := &s.train
		s.out = append(s.out, sentSegment{
			text:  fmt.Sprint(t.Tuple.RemotePort, s.now),
			flags: t.Flags, seq: t.Seq, ack: t.Ack, n: t.Len,
			window: int(t.Window), options: t.Options, ecn: t.ECN,
		})
	}
	slices.SortStableFunc(s.out[n:], func(a, b sentSegment) int { return cmp.Compare(a.text, b.text) })
}

// RFC 6298 §5.5: the host retransmits a SYN-ACK after 1, 2, 4, 8 and 16 s, and gives up 32 s later.
func TestRFC6298_5_5_SYNACK(t *testing.T) {
	s := newScript(t, Config{})
	s.listen(1)
	s.send(SYN, 0, 0, 0, fullOptions)
	s.expect(SYN|ACK, 0, 1, 0)
	s.quiet()
	for wait := time.Second; wait <= 16*time.Second; wait *= 2 {
		require.Equal(t, s.now.Add(wait), s.h.Deadline())
		require.NotNil(t, s.h.half.byTuple[s.tuple])
		s.now = s.h.Deadline()
		s.h.Advance(s.now)
		s.expect(SYN|ACK, 0, 1, 0)
		s.quiet()
	}
	require.Equal(t, s.now.Add(32*time.Second), s.h.Deadline())
	s.now = s.h.Deadline()
	s.h.Advance(s.now)
	s.quiet()
	assert.Zero(t, s.h.numConns())
	assert.Zero(t, s.l.halfOpen)
	assert.Equal(t, clock.Never, s.h.Deadline())
}

// TestHalfOpenTimeoutsAreSpread checks that the host expands only a few half-open connections at a
// time, however many are due.
func TestHalfOpenTimeoutsAreSpread(t *testing.T) {
	const n = 500
	s := newScript(t, Config{Limits: Limits{SynBacklog: n}})
	s.listen(n)
	for i := range n {
		s.tuple.RemotePort = uint16(10000 + i)
		s.send(SYN, 0, 0, 0, fullOptions)
		s.drain(false)
	}
	require.Len(t, s.out, n)
	s.out = nil
	s.now = s.h.Deadline()
	for s.h.Deadline().Due(s.now) {
		s.h.Advance(s.now)
		require.LessOrEqual(t, s.h.conns.len(), maxSpareConns)
		s.drain(false)
	}
	assert.Len(t, s.out, n)
	assert.Len(t, s.h.half.byTuple, n)
	verify(t, s.h)
}

// TestHalfOpenConnectionReusesMemory checks that expanding a half-open connection for a moment
// reuses memory.
func TestHalfOpenConnectionReusesMemory(t *testing.T) {
	s := newScript(t, Config{Knobs: Knobs{Recovery: Recovery{RTOMin: time.Millisecond}}})
	s.listen(1)
	s.send(SYN, 0, 0, 0, fullOptions)
	s.expect(SYN|ACK, 0, 1, 0)
	s.quiet()
	g := s.segment(SYN, 0, 0, 0, 65535, fullOptions)
	again := func() {
		s.now = s.now.Add(time.Millisecond)
		s.h.Input(s.now, &g)
		for s.h.Output(s.now, []int{9}, &s.train) {
			require.Equal(t, SYN|ACK, s.train.Flags)
		}
	}
	again()
	assert.LessOrEqual(t, testing.AllocsPerRun(100, again), 2.0, "the half-open connection and its extra data")
	assert.Len(t, s.h.half.spare, 1)
}

// TestListedHalfOpenConnections checks that half-open connections are listed and found like others
// and can be aborted.
func TestListedHalfOpenConnections(t *testing.T) {
	s := newScript(t, Config{})
	s.listen(4)
	for range 3 {
		s.tuple.RemotePort++
		s.send(SYN, 0, 0, 0, fullOptions)
		s.expect(SYN|ACK, 0, 1, 0)
		s.quiet()
		c := s.h.Find(s.tuple)
		require.NotNil(t, c)
		assert.Equal(t, StateSynReceived, c.State())
		assert.True(t, s.h.Knows(s.tuple))
		i := c.Info()
		assert.Equal(t, s.iss, i.ISS)
		assert.Equal(t, s.peer, i.IRS)
	}
	require.Len(t, s.h.half.byTuple, 3)
	var seen []*Conn
	for c := range s.h.Conns() {
		assert.Equal(t, StateSynReceived, c.State())
		seen = append(seen, c)
	}
	require.Len(t, seen, 3)
	seen[2].AbortWith(s.now, ErrAddressGone)
	s.expect(RST|ACK, 1, 1, 0)
	s.quiet()
	assert.Equal(t, 2, s.l.halfOpen)
	assert.Len(t, s.h.half.byTuple, 2, "the others are reduced again")
	assert.Empty(t, s.h.half.spare, "the caller may still hold the connections")
	s.tuple.RemotePort--
	s.send(SYN, 0, 0, 0, fullOptions)
	s.expect(SYN|ACK, 0, 1, 0)
	s.quiet()
	assert.Len(t, s.h.half.spare, 1, "no caller holds this one")
	seen[0].AbortWith(s.now, ErrAddressGone) // expanded again for the call
	s.tuple.RemotePort--
	s.expect(RST|ACK, 1, 1, 0)
	assert.Equal(t, 2, s.l.halfOpen)
	verify(t, s.h)
	s.l.Close(s.now)
	assert.Zero(t, s.h.numConns())
}

// TestHalfOpenConnectionsAreShown checks that listing half-open connections shows their state and
// does not change it.
func TestHalfOpenConnectionsAreShown(t *testing.T) {
	s := newScript(t, Config{})
	s.listen(3)
	began := s.now
	for port := range uint16(3) {
		s.tuple.RemotePort = 4000 + port
		s.send(SYN, 0, 0, 0, fullOptions)
		s.expect(SYN|ACK, 0, 1, 0)
	}
	s.quiet()
	see := func() (ports []uint16) {
		for c := range s.h.HalfOpen() {
			assert.Equal(t, StateSynReceived, c.State())
			assert.Equal(t, 1000, c.Info().SndMSS)
			ports = append(ports, c.Tuple().RemotePort)
		}
		return ports
	}
	due := s.h.Deadline()
	assert.Equal(t, []uint16{4000, 4001, 4002}, see())
	for c := range s.h.HalfOpen() {
		p, ok := c.Pending()
		assert.True(t, ok)
		assert.Equal(t, Pending{"on", began.Add(time.Second), 0}, p)
		break
	}
	assert.Equal(t, due, s.h.Deadline())
	assert.Equal(t, 3, s.l.halfOpen)
	require.Len(t, s.h.half.byTuple, 3)
	assert.Nil(t, s.h.all.first, "the connections are still reduced")
	verifyHalfOpen(t, s.h)
	s.advance(time.Second, false)
	for c := range s.h.HalfOpen() {
		p, _ := c.Pending()
		assert.Equal(t, Pending{"on", began.Add(3 * time.Second), 1}, p)
	}
	s.send(ACK, 1, 1, 0)
	assert.Equal(t, []uint16{4000, 4001}, see(), "4002 is established")
	s.tuple.RemotePort = 4000
	s.h.lookup(s.now, &s.tuple) // like a segment that causes an answer
	assert.Equal(t, []uint16{4001, 4000}, see(), "a connection with data to send is expanded")
	verifyHalfOpen(t, s.h)
}

// TestPendingTimeouts checks the timers that ss -o shows for a connection.
func TestPendingTimeouts(t *testing.T) {
	s := newScript(t, Config{})
	s.accept(fullOptions)
	s.wait(time.Second)
	_, ok := s.c.Pending()
	assert.False(t, ok, "no timer is pending")
	s.set(func(o *Sockopts) { o.Keepalive = Keepalive{Idle: time.Hour} })
	p, _ := s.c.Pending()
	assert.Equal(t, Pending{"keepalive", s.now.Add(time.Hour), 0}, p)
	s.write(10)
	s.collect()
	p, _ = s.c.Pending()
	assert.Equal(t, "on", p.Name)
	s.clear()
	s.sendWindow(ACK, 1, 11, 0, 0)
	s.write(10)
	s.collect()
	p, _ = s.c.Pending()
	assert.Equal(t, "persist", p.Name)
	s.now = p.At
	s.h.Advance(s.now)
	s.clear()
	p, _ = s.c.Pending()
	assert.Equal(t, 1, p.Retries)
}
