package tcp

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRFC9293_3_5_ActiveOpen(t *testing.T) {
	s := newScript(t, Config{})
	s.connect()
	syn := s.expect(SYN, 0, 0, 0)
	assert.Equal(t, Options{
		MSS: 1360, SACKPermitted: true, HasWindowScale: true, WindowScale: 7,
		HasTimestamps: true, TSVal: s.c.stamps.at(s.now),
	}, syn.options)
	assert.Equal(t, 65535, syn.window, "RFC 7323 §2.2: a SYN's window is not scaled")
	assert.Equal(t, StateSynSent, s.c.State())
	s.now = s.now.Add(30 * time.Millisecond)
	s.send(SYN|ACK, 0, 1, 0, fullOptions)
	ack := s.expect(ACK, 1, 1, 0)
	assert.InDelta(t, 256<<10, ack.window<<7, 128, "an ACK's window is scaled")
	s.quiet()
	assert.Equal(t, StateEstablished, s.c.State())
	i := s.c.Info()
	assert.Equal(t, 30*time.Millisecond, i.RTT)
	assert.Equal(t, 1000, i.SndMSS)
	assert.True(t, i.SACK)
	assert.NotEqual(t, -1, i.SndWScale)
	_, _, e, ok := s.h.NextEvent()
	require.True(t, ok)
	assert.Equal(t, Established|Writable, e)
}

func TestRFC9293_3_5_PassiveOpen(t *testing.T) {
	s := newScript(t, Config{})
	s.listen(1)
	s.send(SYN, 0, 0, 0, Options{MSS: 1000, SACKPermitted: true})
	a := s.expect(SYN|ACK, 0, 1, 0)
	assert.Equal(t, Options{MSS: 1360, SACKPermitted: true}, a.options, "only what was offered")
	_, ok := s.l.Accept()
	assert.False(t, ok, "not before the handshake is complete")
	s.send(ACK, 1, 1, 0)
	c, ok := s.l.Accept()
	require.True(t, ok)
	assert.Equal(t, StateEstablished, c.State())
	assert.Equal(t, -1, c.Info().SndWScale)
}

func TestRFC9293_3_5_SimultaneousOpen(t *testing.T) {
	s := newScript(t, Config{})
	s.connect()
	s.expect(SYN, 0, 0, 0)
	s.send(SYN, 0, 0, 0, fullOptions)
	assert.Equal(t, StateSynReceived, s.c.State())
	s.expect(SYN|ACK, 0, 1, 0)
	s.send(SYN|ACK, 0, 1, 0, fullOptions)
	s.expect(ACK, 1, 1, 0)
	s.send(ACK, 1, 1, 0)
	assert.Equal(t, StateEstablished, s.c.State())
	s.write(10)
	s.expect(PSH|ACK, 1, 1, 10)
}

func TestSimultaneousOpenOfTwoHosts(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(t, seed, wire{delay: time.Millisecond, loss: 0.1}, course())
		a, err := w.hosts[0].Connect(w.now, netip.AddrPortFrom(addrB, 2000), 1000)
		require.NoError(t, err)
		b, err := w.hosts[1].Connect(w.now, netip.AddrPortFrom(addrA, 1000), 2000)
		require.NoError(t, err)
		require.True(t, w.until(time.Minute, func() bool {
			return a.State() == StateEstablished && b.State() == StateEstablished
		}), "seed %d", seed)
		ab, ba := newStream(a, b, 30000), newStream(b, a, 30000)
		require.True(t, w.transfer(time.Minute, ab, ba), "seed %d", seed)
	}
}

func TestSYNFallback(t *testing.T) {
	cfg := Config{}
	t.Run("an answer without options", func(t *testing.T) {
		s := newScript(t, cfg)
		s.connect()
		start := s.now
		for i, want := range []bool{true, true, true, false, false} {
			syn := s.expect(SYN, 0, 0, 0)
			assert.Equal(t, want, syn.options != Options{}, "SYN %d", i)
			s.quiet()
			if i < 4 {
				s.wait(s.h.Deadline().Sub(s.now))
			}
		}
		assert.Equal(t, 15*time.Second, s.now.Sub(start), "1, 2, 4, 8 s")
		s.send(SYN|ACK, 0, 1, 0)
		s.expect(ACK, 1, 1, 0)
		i := s.c.Info()
		assert.True(t, i.Plain)
		assert.Equal(t, 1360, i.SndMSS, "without an MSS option, the route's MTU minus 40")
		assert.Equal(t, 3*time.Second, i.RTO, "RFC 6298 §5.7")
		s.write(2000)
		assert.Zero(t, s.expect(ACK, 1, 1, 1360).options)
		s.send(ACK, 1, 1361, 0)
		s.expect(PSH|ACK, 1361, 1, 640)
		s.send(ACK, 2000, 2001, 10) // out of order
		assert.Zero(t, s.expect(ACK, 2001, 1, 0).options, "never an option on a plain connection")
	})
	t.Run("at the latest the last SYN has no options", func(t *testing.T) {
		s := newScript(t, Config{Retries: Retries{Syn: 2}})
		s.connect()
		for _, want := range []bool{true, true, false} {
			syn := s.expect(SYN, 0, 0, 0)
			assert.Equal(t, want, syn.options != Options{})
			s.wait(s.h.Deadline().Sub(s.now))
		}
	})
	t.Run("an answer with options negotiates", func(t *testing.T) {
		s := newScript(t, cfg)
		s.connect()
		s.wait(16 * time.Second)
		s.collect()
		s.out = nil
		s.send(SYN|ACK, 0, 1, 0, fullOptions)
		s.expect(ACK, 1, 1, 0)
		assert.True(t, s.c.Info().SACK)
		assert.NotEqual(t, -1, s.c.Info().SndWScale)
	})
	t.Run("a SYN without options gets a connection without them", func(t *testing.T) {
		s := newScript(t, cfg)
		s.listen(1)
		s.send(SYN, 0, 0, 0)
		assert.Zero(t, s.expect(SYN|ACK, 0, 1, 0).options)
		s.send(ACK, 1, 1, 0)
		s.c, _ = s.l.Accept()
		s.send(ACK, 5, 1, 10)
		assert.Zero(t, s.expect(ACK, 1, 1, 0).options)
	})
	t.Run("options off", func(t *testing.T) {
		s := newScript(t, Config{Knobs: Knobs{OptionsOff: true}})
		s.connect()
		assert.Zero(t, s.expect(SYN, 0, 0, 0).options)
		s.send(SYN|ACK, 0, 1, 0, fullOptions)
		s.expect(ACK, 1, 1, 0)
		assert.True(t, s.c.Info().Plain)
	})
}

func TestSYNRetriesEnd(t *testing.T) {
	s := newScript(t, Config{Retries: Retries{Syn: 3, SynTimeout: 3 * time.Second}})
	s.connect()
	s.collect()
	start := s.now
	for s.c.State() == StateSynSent {
		s.wait(s.h.Deadline().Sub(s.now))
	}
	s.collect()
	assert.Len(t, s.out, 4)
	assert.Equal(t, 12*time.Second, s.now.Sub(start), "four waits of 3 s, as document 004 says")
	require.ErrorIs(t, s.c.Err(), ErrTimeout)
	assert.Zero(t, s.h.numConns())
	assert.Zero(t, s.h.Deadline())
}

func TestRFC1122_4_2_3_9_SoftErrors(t *testing.T) {
	host := errors.New("host unreachable")
	s := newScript(t, Config{Retries: Retries{Syn: 1}})
	s.connect()
	s.expect(SYN, 0, 0, 0)
	s.h.Unreachable(s.now, s.tuple, s.iss+7, host, true)
	assert.Equal(t, StateSynSent, s.c.State(), "RFC 5927 §4.1: the error is not about a segment in flight")
	s.h.Unreachable(s.now, s.tuple, s.iss, host, false)
	assert.Equal(t, StateSynSent, s.c.State(), "soft error: the host keeps trying")
	s.wait(10 * time.Second)
	require.ErrorIs(t, s.c.Err(), ErrTimeout)
	require.ErrorIs(t, s.c.Err(), host, "the error wraps its cause")

	s = newScript(t, Config{})
	s.connect()
	s.expect(SYN, 0, 0, 0)
	s.h.Unreachable(s.now, s.tuple, s.iss, host, true)
	require.ErrorIs(t, s.c.Err(), ErrRefused, "a closed port ends the attempt")
	s.h.Unreachable(s.now, s.tuple, s.iss, host, false)
}

// A connection attempt lasts longer than a router's restart, with the RTOs of .lnx files and with
// the RTOs of Linux.
func TestConnectOutlastsAnOutage(t *testing.T) {
	for _, row := range []struct {
		min, initial, most, lasts time.Duration
	}{
		{0, 0, 0, 127 * time.Second},
		{time.Millisecond, 100 * time.Millisecond, 5 * time.Second, 131_300 * time.Millisecond},
		{time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 3100 * time.Millisecond},
	} {
		s := newScript(t, Config{
			Knobs: Knobs{Recovery: Recovery{RTOMin: row.min, RTOInitial: row.initial, RTOMax: row.most}},
		})
		began := s.now
		s.connect()
		for s.c.State() == StateSynSent {
			s.wait(100 * time.Millisecond)
		}
		require.ErrorIs(t, s.c.Err(), ErrTimeout)
		assert.InDelta(t, row.lasts.Seconds(), s.now.Sub(began).Seconds(), 0.2)
	}
}

func TestRFC5927_5_2_HardErrors(t *testing.T) {
	port := errors.New("port unreachable")
	s := newScript(t, Config{})
	s.listen(4)
	s.send(SYN, 0, 0, 0)
	s.expect(SYN|ACK, 0, 1, 0)
	s.h.Unreachable(s.now, s.tuple, s.iss, port, true)
	assert.Zero(t, s.h.conns.len(), "a hard error ends a half-open connection")
	assert.Zero(t, s.l.halfOpen)

	s = opened(t, Config{})
	s.write(100)
	s.expect(ACK|PSH, 1, 1, 100)
	s.h.Unreachable(s.now, s.tuple, s.iss+1, port, true)
	assert.Equal(t, StateEstablished, s.c.State(), "a hard error does not end an established connection")
}

func TestRFC9293_3_10_7_3_SynSent(t *testing.T) {
	cases := []struct {
		name  string
		flags Flags
		ack   uint32
		reply Flags
		state State
		err   error
	}{
		{"reset with a good ACK refuses", RST | ACK, 1, 0, StateClosed, ErrRefused},
		{"reset without an ACK is dropped", RST, 0, 0, StateSynSent, nil},
		{"reset with a bad ACK is dropped", RST | ACK, 2, 0, StateSynSent, nil},
		{"bad ACK is reset", ACK, 2, RST, StateSynSent, nil},
		{"old ACK is reset", SYN | ACK, 0, RST, StateSynSent, nil},
		{"good ACK without SYN is dropped", ACK, 1, 0, StateSynSent, nil},
		{"no flags", 0, 0, 0, StateSynSent, nil},
		{"bare FIN", FIN, 0, 0, StateSynSent, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, Config{})
			s.connect()
			s.expect(SYN, 0, 0, 0)
			s.send(c.flags, 0, c.ack, 0)
			if c.reply != 0 {
				s.expect(c.reply, c.ack, 0, 0)
			}
			s.quiet()
			assert.Equal(t, c.state, s.c.State())
			assert.Equal(t, c.err, s.c.Err())
		})
	}
}

func TestRFC9293_3_10_7_1_ClosedPort(t *testing.T) {
	s := newScript(t, Config{})
	s.send(SYN, 0, 0, 0)
	s.expect(RST|ACK, uint32(0)-s.iss, 1, 0)
	s.send(ACK, 10, 20, 5)
	s.expect(RST, 20, 0, 0)
	s.send(FIN, 10, 0, 5)
	s.expect(RST|ACK, uint32(0)-s.iss, 16, 0)
	s.send(RST, 10, 0, 0)
	s.send(RST|ACK, 10, 20, 0)
	s.quiet()
	for range 5000 {
		s.send(SYN, 0, 0, 0)
	}
	s.collect()
	assert.Len(t, s.out, maxReplies, "the queue of resets is bounded")
	assert.Equal(t, uint64(5000-maxReplies), s.h.Drops()[DropReplies])
}

func TestRFC9293_3_10_7_2_Listen(t *testing.T) {
	s := newScript(t, Config{})
	s.listen(1)
	s.send(RST, 0, 0, 0)
	s.send(FIN, 0, 0, 0)
	s.send(SYN|FIN, 0, 0, 0)
	s.send(0, 0, 0, 10)
	s.quiet()
	s.send(ACK, 0, 7, 0)
	s.expect(RST, 7, 0, 0)
	s.send(SYN|ACK, 0, 7, 0)
	s.expect(RST, 7, 0, 0)
	assert.Zero(t, s.h.numConns())
}

func TestRFC9293_3_10_7_4_SynReceived(t *testing.T) {
	begin := func(t *testing.T) *script {
		t.Helper()
		s := newScript(t, Config{Retries: Retries{Syn: 2}})
		s.listen(1)
		s.send(SYN, 0, 0, 0, fullOptions)
		s.expect(SYN|ACK, 0, 1, 0)
		s.quiet()
		return s
	}
	t.Run("a bad ACK is reset", func(t *testing.T) {
		s := begin(t)
		s.send(ACK, 1, 2, 0)
		s.expect(RST, 2, 0, 0)
		assert.Equal(t, 1, s.h.numConns())
	})
	t.Run("a reset returns to LISTEN", func(t *testing.T) {
		s := begin(t)
		s.send(RST, 1, 0, 0)
		s.quiet()
		assert.Zero(t, s.h.numConns())
		assert.Zero(t, s.l.halfOpen)
		_, _, _, ok := s.h.NextEvent()
		assert.False(t, ok, "a connection that was never reported causes no event")
	})
	t.Run("a repeated SYN causes another SYN-ACK", func(t *testing.T) {
		s := begin(t)
		s.send(SYN, 0, 0, 0)
		a := s.expect(SYN|ACK, 0, 1, 0)
		assert.True(t, a.options.SACKPermitted, "the first SYN has negotiated SACK")
	})
	t.Run("the host gives up", func(t *testing.T) {
		s := begin(t)
		s.wait(time.Minute)
		s.collect()
		assert.Len(t, s.out, 2)
		assert.Zero(t, s.h.numConns())
		assert.Zero(t, s.l.halfOpen)
	})
	t.Run("data and FIN arrive with the last ACK", func(t *testing.T) {
		s := begin(t)
		s.send(ACK|FIN, 1, 1, 100)
		s.expect(ACK, 1, 102, 0)
		s.c, _ = s.l.Accept()
		assert.Equal(t, StateCloseWait, s.c.State())
		assert.Equal(t, 100, s.read(200))
		assert.True(t, s.c.ReadDone())
	})
}

func TestListenBacklog(t *testing.T) {
	s := newScript(t, Config{
		Knobs: Knobs{SynCookies: CookiesOff}, Limits: Limits{SynBacklog: 64},
	})
	s.listen(3)
	open := func(port uint16, complete bool) {
		s.tuple.RemotePort = port
		s.send(SYN, 0, 0, 0)
		s.collect()
		if complete && len(s.out) > 0 {
			s.send(ACK, 1, 1, 0)
		}
	}
	for p := range uint16(10) {
		open(1000+p, true)
		s.out = nil
	}
	assert.Equal(t, 3, s.l.Queued(), "the fourth SYN is left unanswered")
	assert.Equal(t, uint64(7), s.h.Drops()[DropBacklog])
	for range 3 {
		_, ok := s.l.Accept()
		assert.True(t, ok)
	}
	for p := range uint16(500) {
		open(3000+p, false)
		s.out = nil
	}
	assert.Equal(t, 64, s.l.halfOpen, "half-open connections are bounded")
	s.l.Close(s.now)
	assert.Equal(t, 3, s.h.numConns(), "the listener ends only half-open connections")
	s.l.Close(s.now)
	_, err := s.h.Listen(netip.AddrPortFrom(addrA, 80), 1)
	require.NoError(t, err)
}

func TestConnectAndListenErrors(t *testing.T) {
	s := newScript(t, Config{})
	_, err := s.h.Connect(s.now, netip.AddrPortFrom(addrB, 0), 0)
	require.ErrorIs(t, err, ErrAddress)
	for _, remote := range []string{"[ff02::1]:80", "224.0.0.1:80", "255.255.255.255:80"} {
		_, err = s.h.Connect(s.now, netip.MustParseAddrPort(remote), 0)
		require.ErrorIs(t, err, ErrNotHost, remote)
	}
	_, err = s.h.Connect(s.now, netip.MustParseAddrPort("[::]:80"), 0)
	require.ErrorIs(t, err, ErrAddress)
	_, err = s.h.ConnectFrom(s.now, netip.MustParseAddrPort("[::1]:0"), netip.AddrPortFrom(addrB, 80))
	require.ErrorIs(t, err, ErrAddress, "the families differ")
	s.connect()
	_, err = s.h.Connect(s.now, netip.AddrPortFrom(addrB, 4000), 80)
	require.ErrorIs(t, err, ErrPortInUse)
	s.listen(1)
	_, err = s.h.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), 80), 1)
	require.ErrorIs(t, err, ErrPortInUse)
	l, err := s.h.Listen(netip.AddrPort{}, 1)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, int(l.Local().Port()), firstPort, "port 0 means any dynamic port")
	s.path.Outlet = -1
	_, err = s.h.Connect(s.now, netip.AddrPortFrom(addrB, 4001), 0)
	require.ErrorIs(t, err, ErrUnreachable)
}

func TestConfigIsChecked(t *testing.T) {
	route := func(netip.Addr) Path { return Path{} }
	for name, cfg := range map[string]Config{
		"no route":    {},
		"bounds":      {Route: route, Knobs: Knobs{Recovery: Recovery{RTOMin: time.Second, RTOMax: time.Millisecond}}},
		"negative":    {Route: route, Retries: Retries{SynTimeout: -1}},
		"limits":      {Route: route, Retries: Retries{Data: -1}},
		"buffers":     {Route: route, Buffers: Buffers{Recv: 1}},
		"huge buffer": {Route: route, Buffers: Buffers{Send: 1 << 31}},
		"train":       {Route: route, TrainSegments: 1000},
		"congestion":  {Route: route, Knobs: Knobs{Recovery: Recovery{Congestion: "vegas"}}},
	} {
		_, err := NewHost(cfg)
		require.ErrorContains(t, err, "tcp: config: ", name)
	}
	h, err := NewHost(Config{Route: route})
	require.NoError(t, err)
	assert.Equal(t, 40*time.Millisecond, h.cfg.DelayedAck)
	require.NoError(t, h.SetKnobs(Knobs{Recovery: Recovery{Congestion: "none"}, NoDelay: true}))
	assert.Equal(t, "none", h.Knobs().Recovery.Congestion)
	assert.True(t, h.Knobs().NoDelay)
	assert.Equal(t, 10, h.Knobs().Recovery.InitialWindow, "zero means the default")
	require.Error(t, h.SetKnobs(Knobs{Recovery: Recovery{Congestion: "vegas"}}))
	assert.Equal(t, time.Minute, h.TimeWait())
}

// TestSetKnobs checks that SetKnobs keeps a configured time, even if it equals the derived one, and
// that a derived time follows RTOMin.
func TestSetKnobs(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{
		0:                     10 * time.Millisecond,
		40 * time.Millisecond: 40 * time.Millisecond, // derived from the default of RTOMin
	} {
		h, err := NewHost(Config{Route: func(netip.Addr) Path { return Path{} }})
		require.NoError(t, err)
		k := h.Knobs()
		k.DelayedAck = given
		require.NoError(t, h.SetKnobs(k))
		require.Equal(t, 40*time.Millisecond, h.cfg.DelayedAck)
		k = h.Knobs()
		k.Recovery.RTOMin = 50 * time.Millisecond
		require.NoError(t, h.SetKnobs(k))
		assert.Equal(t, want, h.cfg.DelayedAck, "asked for %v", given)
	}
}
