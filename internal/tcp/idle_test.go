package tcp

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

func isIdle(c *Conn) bool { return c.snd.rec.Idle() }

// carry moves n bytes from one end to the other.
func (p *pipe) carry(n int) {
	for sent, read := 0, 0; read < n; {
		k, _ := p.a.Send(p.now, p.buf[:min(n-sent, len(p.buf))])
		sent += k
		p.exchange()
		k, _ = p.b.Receive(p.now, p.buf)
		read += k
		p.drain()
	}
	p.exchange()
	p.exchange()
	p.drain()
}

// silence advances the clock of both hosts without new data.
func (p *pipe) silence(d time.Duration) {
	p.now += clock.Time(d)
	for _, h := range p.hosts {
		for h.Deadline().Due(p.now) {
			h.Advance(p.now)
			p.exchange()
		}
	}
	p.drain()
}

// TestNewConnectionIsIdle checks that a connection after the handshake has neither send and receive
// state nor a controller.
func TestNewConnectionIsIdle(t *testing.T) {
	p := newPipe(t, Config{})
	for _, c := range []*Conn{p.a, p.b} {
		verifyIdle(t, c)
		assert.True(t, isIdle(c))
		assert.Nil(t, c.snd.rec.CC.Controller)
		assert.Positive(t, c.Info().SndCwnd, "Info shows the initial window")
		assert.True(t, isIdle(c), "Info allocates no state")
		assert.Nil(t, c.snd.rec.CC.Controller, "Info makes no controller")
	}
}

// TestSilentConnectionBecomesIdle checks that a connection frees its send and receive state one
// second after its last data, keeps its path estimates and counters, and reuses freed state when it
// sends again.
func TestSilentConnectionBecomesIdle(t *testing.T) {
	p := newPipe(t, Config{})
	p.carry(100_000)
	require.False(t, isIdle(p.a))
	before := p.a.Info()
	p.silence(2 * time.Second)
	for i, c := range []*Conn{p.a, p.b} {
		require.True(t, isIdle(c), "end %d", i)
		verifyIdle(t, c)
		assert.Equal(t, clock.Never, c.deadline())
	}
	after := p.a.InfoAt(before.Time)
	after.Time, after.LimitedFor, after.Limited = before.Time, before.LimitedFor, before.Limited
	after.BusyTime, before.BusyTime = 0, 0
	after.PipeACK, before.PipeACK = 0, 0 // RFC 7661 §4.2: no recent delivery
	assert.Equal(t, before, after)
	next := uint32(p.b.rcv.nxt)
	assert.Equal(t, Reassembly{Next: next, Window: p.b.Info().RcvWnd}, p.b.Reassembly())
	assert.Equal(t, ArrivalNext, p.b.Arrival(next, 1))
	assert.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		p.carry(10_000)
		p.silence(2 * time.Second)
	}), 2.0, "one block for each ring buffer")
	p.carry(1)
	assert.Equal(t, p.a.snd.tx.Head(), p.a.Info().DeliveredBytes, "the counters continue")
}

// TestIdleConnectionKeepsController checks that an idle connection that was busy keeps only its
// controller.
func TestIdleConnectionKeepsController(t *testing.T) {
	const n = 2000
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // empties the pool of buffers
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	each := func(text int) int {
		p := newPipe(t, Config{})
		l, err := p.hosts[1].Listen(netip.AddrPortFrom(addrB, 81), 1)
		require.NoError(t, err)
		conns := make([]*Conn, 0, 2*n)
		p.carry(1000) // allocates the hosts' shared memory
		p.silence(2 * time.Second)
		before := heap()
		for range n {
			p.connect(t, l)
			p.carry(text)
			conns = append(conns, p.a, p.b)
		}
		p.silence(2 * time.Second)
		for _, h := range p.hosts {
			require.Empty(t, h.deadlines.heap)
			h.receivers.spare, h.due, h.deadlines.heap = nil, nil, nil // do not count the hosts' shared memory
			h.recoveries = recovery.Host{Options: h.recoveries.Options}
		}
		for _, c := range conns {
			require.True(t, isIdle(c))
		}
		size := (heap() - before) / n
		runtime.KeepAlive(p)
		runtime.KeepAlive(conns)
		return size
	}
	fresh, busy := each(0), each(3000)
	t.Logf("two ends: %d bytes, %d if they were busy", fresh, busy)
	assert.Less(t, busy-fresh, 230)
}

// connect opens another connection, to a listener of the second host at port 81.
func (p *pipe) connect(t *testing.T, l *Listener) {
	t.Helper()
	var err error
	p.a, err = p.hosts[0].Connect(p.now, netip.AddrPortFrom(addrB, 81), 0)
	require.NoError(t, err)
	p.exchange()
	p.exchange()
	p.b, _ = l.Accept()
	require.NotNil(t, p.b)
}

// TestShortConnectionsReuseBuffers checks that a connection that is over leaves its send and receive
// buffers to the next one.
func TestShortConnectionsReuseBuffers(t *testing.T) {
	const n, buffer = 200, 64 << 10
	p := newPipe(t, Config{MSL: -1})
	l, err := p.hosts[1].Listen(netip.AddrPortFrom(addrB, 81), 8)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		p.connect(t, l)
		p.carry(1000)
		p.a.Close(p.now)
		p.exchange()
		p.b.Close(p.now)
		p.exchange()
		p.exchange()
		p.drain()
		require.Equal(t, StateClosed, p.a.State())
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, int(after.TotalAlloc-before.TotalAlloc)/n, buffer, "bytes per connection")
}

// TestCallsOnIdleConnections checks that every call works on a connection without send and receive
// state. RFC 1191 §3: a router may report a SYN as too big.
func TestCallsOnIdleConnections(t *testing.T) {
	p := newPipe(t, Config{})
	h := p.hosts[0]
	set := func(edit func(*Sockopts)) func(*Conn) {
		return func(c *Conn) {
			o := c.Sockopts()
			edit(&o)
			assert.NoError(t, c.SetSockopts(p.now, o))
		}
	}
	for name, do := range map[string]func(c *Conn){
		"routes":   func(*Conn) { h.Rerouted() },
		"too big":  func(c *Conn) { h.TooBig(p.now, c.tuple, uint32(c.snd.Una), 576) },
		"unreach":  func(c *Conn) { h.Unreachable(p.now, c.tuple, uint32(c.snd.Una), ErrUnreachable, false) },
		"segments": set(func(o *Sockopts) { o.MaxSeg = 300 }),
		"read":     func(c *Conn) { c.Consumed(p.now) },
		"buffers":  set(func(o *Sockopts) { o.RecvBuffer, o.SendBuffer = 1<<20, 1<<20 }),
		"control":  func(c *Conn) { assert.NoError(t, setCongestion(c, "reno")) },
		"wait":     set(func(o *Sockopts) { o.UserTimeout = time.Minute }),
		"tell":     set(func(o *Sockopts) { o.AdvertiseTimeout = true }),
		"keep":     set(func(o *Sockopts) { o.Keepalive = Keepalive{Idle: time.Second, Count: 1} }),
		"cork":     set(func(o *Sockopts) { o.Cork = true }),
		"no delay": set(func(o *Sockopts) { o.Cork, o.NoDelay = false, true }),
		"probe":    func(c *Conn) { c.SetProbe(func(*Info) {}) },
	} {
		p.silence(2 * time.Second)
		require.True(t, isIdle(p.a), name)
		do(p.a)
		p.exchange()
		p.exchange()
		require.NoError(t, p.a.Err(), name)
		p.carry(5000)
	}
	set(func(o *Sockopts) { o.Keepalive = Keepalive{} })(p.a)
	p.silence(2 * time.Second)
	p.a.Close(p.now)
	p.exchange()
	p.exchange()
	assert.Equal(t, StateFinWait2, p.a.State())
	p.silence(2 * time.Second)
	assert.True(t, isIdle(p.a), "a connection in FIN-WAIT-2 frees its state, too")
	_ = p.a.Info()
	p.b.Abort(p.now)
	p.exchange()
	assert.Equal(t, StateClosed, p.a.State())
	assert.NotZero(t, p.a.Info().BytesSent)

	syn, err := h.Connect(p.now, p.a.tuple.Remote(), 0)
	require.NoError(t, err)
	require.True(t, h.Output(p.now, p.room, &p.train))
	require.False(t, h.Output(p.now, p.room, &p.train))
	require.True(t, isIdle(syn))
	h.TooBig(p.now, syn.tuple, uint32(syn.snd.iss), 576)
	assert.Equal(t, StateSynSent, syn.State())
}

// TestLossCountersOfIdleConnections checks that loss counters are available while a connection is
// idle, busy again, and closed. A connection without losses stores no counters.
func TestLossCountersOfIdleConnections(t *testing.T) {
	s := newScript(t, Config{})
	s.accept(fullOptions)
	lose := func(sent uint32) {
		s.write(100)
		s.clear()
		s.wait(3 * time.Second) // until the data has been retransmitted more than once
		s.clear()
		s.send(ACK, 1, 1+sent, 0)
		s.wait(3 * time.Second)
		s.clear()
	}
	s.write(100)
	s.clear()
	s.send(ACK, 1, 101, 0)
	s.wait(3 * time.Second)
	s.clear()
	require.True(t, isIdle(s.c))
	lose(200)
	require.True(t, isIdle(s.c))
	first := s.c.Info()
	assert.Positive(t, first.TotalRetrans)
	assert.Positive(t, first.TotalRTO)
	assert.Equal(t, 100*first.TotalRetrans, first.BytesRetrans)
	assert.Equal(t, uint64(1), first.TotalRTORecoveries)
	require.True(t, isIdle(s.c), "Info allocates no state")
	lose(300)
	second := s.c.Info()
	assert.Greater(t, second.TotalRetrans, first.TotalRetrans)
	assert.Equal(t, uint64(2), second.TotalRTORecoveries)
	s.c.Abort(s.now)
	s.clear()
	require.Equal(t, StateClosed, s.c.State())
	require.True(t, isIdle(s.c))
	assert.Equal(t, second.TotalRetrans, s.c.Info().TotalRetrans)
}
