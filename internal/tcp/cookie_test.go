package tcp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// always returns a script with a listener that always uses SYN cookies.
func always(t *testing.T, k Knobs) *script {
	t.Helper()
	k.SynCookies = CookiesAlways
	s := newScript(t, Config{Knobs: k})
	s.listen(8)
	return s
}

// sendSYNForCookie sends a SYN and reads the cookie of the answer, which becomes the host's initial
// sequence number.
func (s *script) sendSYNForCookie(flags Flags, o Options) sentSegment {
	s.t.Helper()
	s.send(flags, 0, 0, 0, o)
	s.collect()
	require.Len(s.t, s.out, 1)
	g := s.out[0]
	s.out = nil
	require.True(s.t, g.flags.Has(SYN|ACK), g)
	require.Zero(s.t, s.h.numConns(), "the host keeps no state")
	s.iss += g.seq
	return g
}

// returnCookie sends the ACK that returns the cookie.
func (s *script) returnCookie(g sentSegment) {
	s.t.Helper()
	var o Options
	if g.options.HasTimestamps {
		o = stamp(5000, g.options.TSVal)
	}
	s.send(ACK, 1, 1, 0, o)
	s.c, _ = s.l.Accept()
	require.NotNil(s.t, s.c)
	require.Equal(s.t, StateEstablished, s.c.State())
}

// RFC 4987 §3.6: the connection has the options that the SYN offered. The cookie and the low bits
// of the timestamp encode them.
func TestRFC4987_3_6_CookiesKeepTheOptions(t *testing.T) {
	all := Options{
		MSS: 1460, SACKPermitted: true, HasWindowScale: true, WindowScale: 9,
		HasTimestamps: true, TSVal: 77,
	}
	edit := func(f func(o *Options)) Options { o := all; f(&o); return o }
	cases := []struct {
		name  string
		flags Flags
		syn   Options
		knobs Knobs
		want  recovery.Info
	}{
		{"all", SYN | ECE | CWR, all, Knobs{}, recovery.Info{
			SACK: true, Timestamps: true, ECN: true, SndWScale: 9, SndMSS: 1348,
		}},
		{"no ECN", SYN, all, Knobs{}, recovery.Info{
			SACK: true, Timestamps: true, SndWScale: 9, SndMSS: 1348,
		}},
		{
			"a scale of 14", SYN, edit(func(o *Options) { o.WindowScale = 14 }),
			Knobs{},
			recovery.Info{SACK: true, Timestamps: true, SndWScale: 14, SndMSS: 1348},
		},
		{
			"no SACK", SYN, edit(func(o *Options) { o.SACKPermitted = false }),
			Knobs{},
			recovery.Info{Timestamps: true, SndWScale: 9, SndMSS: 1348},
		},
		{
			"no scale", SYN, edit(func(o *Options) { o.HasWindowScale, o.WindowScale = false, 0 }),
			Knobs{},
			recovery.Info{SACK: true, Timestamps: true, SndMSS: 1348, SndWScale: -1},
		},
		{
			"without stamps only the MSS", SYN | ECE | CWR,
			edit(func(o *Options) { o.HasTimestamps, o.TSVal = false, 0 }),
			Knobs{},
			recovery.Info{SndMSS: 1360, SndWScale: -1},
		},
		{"stamps refused", SYN, all, Knobs{NoTimestamps: true}, recovery.Info{SndMSS: 1360, SndWScale: -1}},
		{"SACK refused", SYN, all, Knobs{NoSACK: true}, recovery.Info{
			Timestamps: true, SndWScale: 9, SndMSS: 1348,
		}},
		{"nothing offered", SYN, Options{}, Knobs{}, recovery.Info{Plain: true, SndMSS: 1360, SndWScale: -1}},
		{"options off", SYN, all, Knobs{OptionsOff: true}, recovery.Info{Plain: true, SndMSS: 1360, SndWScale: -1}},
		{"no MSS option", SYN, Options{SACKPermitted: true}, Knobs{}, recovery.Info{SndMSS: 536, SndWScale: -1}},
		{"a small MSS", SYN, Options{MSS: 540}, Knobs{}, recovery.Info{SndMSS: 536, SndWScale: -1}},
		{"a tiny MSS", SYN, Options{MSS: 60}, Knobs{}, recovery.Info{SndMSS: 88, SndWScale: -1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := always(t, c.knobs)
			g := s.sendSYNForCookie(c.flags, c.syn)
			assert.Equal(t, c.want.SACK, g.options.SACKPermitted, "the connection has the options of the SYN-ACK")
			assert.Equal(t, c.want.SndWScale >= 0, g.options.HasWindowScale)
			assert.Equal(t, c.want.Timestamps, g.options.HasTimestamps)
			assert.Equal(t, c.want.ECN, g.flags.Has(ECE))
			s.returnCookie(g)
			i := s.c.Info()
			assert.Equal(t, g.window, i.RcvWnd, "the SYN-ACK has announced this window")
			assert.Equal(t, c.want, recovery.Info{
				SACK: i.SACK, Timestamps: i.Timestamps, ECN: i.ECN,
				Plain: i.Plain, SndWScale: i.SndWScale, SndMSS: i.SndMSS,
			})
			assert.Equal(t, uint64(1), s.h.Counters().CookiesAccepted)
			o := Options{}
			if i.Timestamps {
				o = stamp(5001, 1)
			}
			s.send(PSH|ACK, 1, 1, 100, o)
			s.expect(ACK, 1, 101, 0)
			assert.Equal(t, 100, s.read(200), "the connection transfers data")
			s.write(80)
			s.expect(PSH|ACK, 1, 101, 80)
		})
	}
}

// RFC 4987 §3.6: a cookie is valid for at least one minute and at most two.
func TestRFC4987_3_6_Minutes(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		good  bool
	}{{0, true}, {59 * time.Second, true}, {60 * time.Second, true}, {2 * time.Minute, false}, {time.Hour, false}} {
		s := always(t, Knobs{})
		s.sendSYNForCookie(SYN, fullOptions)
		s.now = s.now.Add(c.after)
		s.send(ACK, 1, 1, 0)
		_, ok := s.l.Accept()
		assert.Equal(t, c.good, ok, c.after)
		if !c.good {
			s.expect(RST, 1, 0, 0)
		}
	}
}

// RFC 4987 §3.6: a forged cookie opens no connection. The host does not check cookies at all when
// it has sent none recently.
func TestRFC4987_3_6_ForgedCookies(t *testing.T) {
	s := always(t, Knobs{})
	s.sendSYNForCookie(SYN, fullOptions)
	iss := s.iss
	reject := func(what string) {
		t.Helper()
		s.send(ACK, 1, 1, 0)
		_, ok := s.l.Accept()
		require.False(t, ok, what)
		s.expect(RST, 1, 0, 0)
	}
	for i := range uint32(20000) {
		s.iss = iss + 64 + i*0x9e3779b1
		s.send(ACK, 1, 1, 0)
		s.collect()
		s.out = nil
	}
	assert.Zero(t, s.h.Counters().CookiesAccepted, "one guess in 2^24 × 256 / 18 is right")
	s.iss = iss
	s.tuple.RemotePort++
	reject("another port's")
	s.tuple.RemotePort--
	s.peer++
	reject("another number of the peer's")
	s.peer--
	failed := s.h.Counters().CookiesFailed
	s.send(ACK, 1, 1, 0)
	_, ok := s.l.Accept()
	require.True(t, ok, "the valid cookie still opens a connection")

	s = newScript(t, Config{})
	s.listen(1)
	s.iss = iss
	reject("no recent cookie")
	assert.Zero(t, s.h.Counters().CookiesFailed)
	assert.NotZero(t, failed)
}

// RFC 4987 §3.6: a timestamp that encodes options is never ahead of the clock. Otherwise the peer's
// PAWS would drop the segments that follow.
func TestRFC4987_3_6_StampsDoNotRunAhead(t *testing.T) {
	s := always(t, Knobs{})
	for i := range 200 {
		s.now = s.now.Add(time.Millisecond)
		o := fullOptions
		o.HasTimestamps, o.TSVal, o.WindowScale = true, 1, uint8(i%15)
		s.send(SYN, 0, 0, 0, o)
		s.collect()
		g := s.out[len(s.out)-1]
		clocked := recovery.Tick(s.now) + stampOffset(&s.h.cfg.Secret, &s.tuple)
		require.False(t, after(g.options.TSVal, clocked))
		require.Less(t, clocked-g.options.TSVal, uint32(128))
	}
}

// RFC 4987 §3.1: during a SYN flood the number of half-open connections is bounded, and clients
// still connect by cookies. The host sends no cookies after the flood.
func TestRFC4987_3_1_Flood(t *testing.T) {
	s := newScript(t, Config{Limits: Limits{SynBacklog: 16}})
	s.listen(4)
	honest := s.tuple
	for port := range uint16(200) {
		s.tuple.RemotePort = 10000 + port
		s.send(SYN, 0, 0, 0, fullOptions)
		s.collect()
		s.out = nil
	}
	assert.Equal(t, 16, s.l.halfOpen)
	assert.Equal(t, 16, s.h.numConns())
	assert.Equal(t, uint64(184), s.h.Counters().CookiesSent)
	s.tuple = honest
	s.send(SYN, 0, 0, 0, fullOptions)
	s.collect()
	s.iss += s.out[0].seq
	s.out = nil
	s.send(ACK, 1, 1, 0)
	_, ok := s.l.Accept()
	assert.True(t, ok)
	assert.Equal(t, 16, s.l.halfOpen)
	s.l.Close(s.now)
	assert.Equal(t, 1, s.h.numConns())
}

// RFC 4987: a spoofed address gets at most five retransmissions of a SYN-ACK, none of a cookie, and
// no SYN-ACK that is longer than the SYN.
func TestRFC4987_NoAmplification(t *testing.T) {
	o := fullOptions
	o.HasTimestamps, o.TSVal = true, 1
	for _, k := range []Knobs{{}, {SynCookies: CookiesAlways}} {
		for _, syn := range []Options{{}, {MSS: 1460}, fullOptions, o} {
			s := newScript(t, Config{Knobs: k})
			s.listen(1)
			s.send(SYN, 0, 0, 0, syn)
			s.collect()
			for range 100 {
				s.wait(10 * time.Second)
			}
			s.collect()
			most := 6
			if k.SynCookies == CookiesAlways {
				most = 1
			}
			assert.Len(t, s.out, most)
			for _, g := range s.out {
				assert.LessOrEqual(t, g.options.size(), syn.size())
				assert.Zero(t, g.n)
			}
			assert.Zero(t, s.h.numConns())
		}
	}
}

// TestAcceptQueueFull checks that, as in Linux, the host drops the ACK that completes a handshake
// while the accept queue is full, and retransmits the SYN-ACK.
func TestAcceptQueueFull(t *testing.T) {
	s := newScript(t, Config{})
	s.listen(1)
	open := func(port uint16) {
		s.tuple.RemotePort = port
		s.send(SYN, 0, 0, 0, fullOptions)
		s.expect(SYN|ACK, 0, 1, 0)
	}
	open(1)
	open(2)
	s.tuple.RemotePort = 1
	s.send(ACK, 1, 1, 0)
	s.tuple.RemotePort = 2
	s.send(ACK, 1, 1, 0)
	s.send(PSH|ACK, 1, 1, 10)
	s.quiet()
	assert.Equal(t, 1, s.l.Queued())
	assert.Equal(t, 1, s.l.halfOpen)
	assert.Equal(t, uint64(2), s.h.Drops()[DropBacklog])
	s.tuple.RemotePort = 3
	s.send(SYN, 0, 0, 0, fullOptions)
	s.quiet()
	_, ok := s.l.Accept()
	require.True(t, ok)
	s.tuple.RemotePort = 2
	s.wait(1100 * time.Millisecond)
	s.expect(SYN|ACK, 0, 1, 0)
	s.send(PSH|ACK, 1, 1, 10)
	s.expect(ACK, 1, 11, 0)
	s.c, ok = s.l.Accept()
	require.True(t, ok)
	assert.Equal(t, 10, s.read(20))

	s = always(t, Knobs{})
	s.l.backlog = 1
	tuple, peer := s.tuple, s.iss
	a := s.sendSYNForCookie(SYN, fullOptions)
	first := s.iss
	s.iss, s.tuple.RemotePort = peer, 99
	s.sendSYNForCookie(SYN, fullOptions)
	second := s.iss
	s.iss, s.tuple = first, tuple
	s.send(ACK, 1, 1, 0)
	s.iss, s.tuple.RemotePort = second, 99
	s.send(ACK, 1, 1, 0)
	s.quiet()
	assert.Equal(t, 1, s.l.Queued())
	assert.Equal(t, uint64(1), s.h.Drops()[DropBacklog])
	assert.False(t, a.options.HasTimestamps)
	// The other segments of the client's first flight carry no cookie. The host does not accept
	// them before the segment with the cookie.
	s.send(PSH|ACK, 11, 1, 10)
	s.quiet()
	s.send(ACK, 11, 1, 0)
	s.expect(RST, 1, 0, 0)
	_, ok = s.l.Accept()
	require.True(t, ok)
	s.send(PSH|ACK, 1, 1, 10)
	s.expect(ACK, 1, 11, 0)
}

// TestCookiesBetweenHosts opens connections over a lossy link with every SYN answered by a cookie.
func TestCookiesBetweenHosts(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed, wire{delay: time.Millisecond, loss: 0.05},
			Config{Knobs: Knobs{SynCookies: CookiesAlways, ECN: ECNOn}})
		// The cookie's ACK may be lost. The first data segment carries the cookie again.
		l, err := w.hosts[1].Listen(netip.AddrPortFrom(addrB, 80), 4)
		require.NoError(t, err)
		var b *Conn
		w.accept = func(c *Conn) { b = c }
		a, err := w.hosts[0].Connect(w.now, netip.AddrPortFrom(addrB, 80), 0)
		require.NoError(t, err)
		a.Tx().Write(pattern[:1])
		a.Wrote(w.now)
		require.True(t, w.until(time.Minute, func() bool { return b != nil }), "seed %d", seed)
		s := newStream(a, b, 300000)
		s.written = 1
		require.True(t, w.transfer(time.Minute, s), "seed %d", seed)
		assert.True(t, b.Info().SACK)
		assert.Zero(t, l.halfOpen)
	}
}

func TestCookieModes(t *testing.T) {
	for m := range numCookieModes {
		got, ok := ParseCookieMode(m.String())
		assert.True(t, ok)
		assert.Equal(t, m, got)
	}
	_, ok := ParseCookieMode("oatmeal")
	assert.False(t, ok)
	assert.Equal(t, "?", numCookieModes.String())
	assert.Equal(t, clock.Never, (&Listener{}).cookieAt)
}
