package tcp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inTimeWait brings a connection into TIME-WAIT, with timestamps (the last is 300) or without.
func inTimeWait(t *testing.T, cfg Config, stamps bool) *script {
	t.Helper()
	var s *script
	var o []Options
	if stamps {
		s = stamped(t, cfg, 100)
		o = []Options{stamp(300, 1)}
	} else {
		s = opened(t, cfg)
	}
	_ = s.c.CloseWrite(s.now)
	s.expect(FIN|ACK, 1, 1, 0)
	s.send(FIN|ACK, 1, 2, 0, o...)
	s.expect(ACK, 2, 2, 0)
	require.Equal(t, StateTimeWait, s.c.State())
	return s
}

// TestRFC6191_2_Reuse checks which SYNs end TIME-WAIT (RFC 6191 §2).
func TestRFC6191_2_Reuse(t *testing.T) {
	const before, after = ^uint32(999), 1000 // the last sequence number is 1
	with := func(val uint32) Options {
		o := fullOptions
		o.HasTimestamps, o.TSVal = true, val
		return o
	}
	cases := []struct {
		name   string
		stamps bool // the last connection used timestamps
		knobs  Knobs
		seq    uint32
		syn    Options
		want   bool
	}{
		{"newer stamp, lower number", true, Knobs{}, before, with(301), true},
		{"equal stamp, higher number", true, Knobs{}, after, with(300), true},
		{"equal stamp, lower number", true, Knobs{}, before, with(300), false},
		{"older stamp, higher number", true, Knobs{}, after, with(299), false},
		{"no stamp, higher number", true, Knobs{}, after, fullOptions, true},
		{"no stamp, lower number", true, Knobs{}, before, fullOptions, false},
		{"none before, one now", false, Knobs{}, before, with(1), true},
		{"none before or now, higher number", false, Knobs{}, after, fullOptions, true},
		{"none before or now, lower number", false, Knobs{}, before, fullOptions, false},
		{"none wanted, lower number", false, Knobs{NoTimestamps: true}, before, with(1), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := inTimeWait(t, Config{Knobs: c.knobs}, c.stamps)
			last := s.iss + 2
			s.send(SYN, c.seq, 0, 0, c.syn)
			if !c.want {
				s.expect(ACK, 2, 2, 0)
				assert.Equal(t, 1, s.h.TimeWaits())
				return
			}
			s.collect()
			require.Len(t, s.out, 1)
			require.Equal(t, SYN|ACK, s.out[0].flags)
			assert.Zero(t, s.h.TimeWaits())
			iss := s.out[0].seq + s.iss
			assert.Equal(t, last+1<<16, iss, "RFC 1122 §4.2.2.13: beyond the last incarnation's")
		})
	}
}

// RFC 1337 §4: only the peer's own FIN prolongs TIME-WAIT, and no segment, not even a reset, ends
// it.
func TestRFC1337_4_Hazards(t *testing.T) {
	s := inTimeWait(t, Config{}, false)
	s.wait(30 * time.Second)
	s.send(RST, 2, 0, 0)
	s.send(RST|ACK, 2, 2, 0)
	s.quiet()
	s.send(FIN|ACK, 700, 2, 0) // a FIN with another sequence number
	s.expect(ACK, 2, 2, 0)
	s.wait(time.Second)
	s.send(ACK, 1, 2, 50) // old data
	s.expect(ACK, 2, 2, 0)
	assert.Equal(t, 1, s.h.TimeWaits())
	s.wait(30 * time.Second)
	assert.Equal(t, StateClosed, s.c.State())
}

// RFC 6191 §2: a SYN that the listener cannot accept leaves TIME-WAIT unchanged.
func TestRFC6191_2_RefusedSYN(t *testing.T) {
	cfg := Config{Knobs: Knobs{SynCookies: CookiesOff}, Limits: Limits{SynBacklog: 1}}
	s := inTimeWait(t, cfg, false)
	wait := s.tuple
	s.tuple.RemotePort++
	s.send(SYN, 0, 0, 0)
	s.collect()
	s.out = nil
	s.tuple = wait
	s.send(SYN, 1000, 0, 0)
	s.quiet()
	assert.Equal(t, uint64(1), s.h.Drops()[DropBacklog])
	assert.Equal(t, 1, s.h.TimeWaits())
	s.send(SYN|FIN, 1000, 0, 0)
	s.expect(ACK, 2, 2, 0)
	assert.Equal(t, 1, s.h.TimeWaits())
	assert.Equal(t, StateTimeWait, s.c.State())
}

// RFC 6191 §2: a host opens a new connection over its own TIME-WAIT only if its timestamp will be
// newer and no other port is free.
func TestRFC6191_2_ActiveReuse(t *testing.T) {
	remote := netip.AddrPortFrom(addrB, 4000)
	s := inTimeWait(t, Config{}, true)
	s.l.Close(s.now)
	_, err := s.h.Connect(s.now, remote, 80)
	require.ErrorIs(t, err, ErrPortInUse, "not before the timestamp has advanced")
	s.wait(time.Second)
	stamp := s.c.stamps.at(s.now)
	c, err := s.h.Connect(s.now, remote, 80)
	require.NoError(t, err)
	syn := s.expect(SYN, 2+1<<16, 0, 0)
	assert.Equal(t, stamp, syn.options.TSVal, "the tuple's timestamp clock continues")
	assert.Zero(t, s.h.TimeWaits())
	assert.Equal(t, StateClosed, s.c.State())
	assert.Equal(t, StateSynSent, c.State())

	s = inTimeWait(t, Config{}, false)
	s.wait(50 * time.Second)
	_, err = s.h.Connect(s.now, remote, 80)
	require.ErrorIs(t, err, ErrPortInUse, "no timestamp proves that the SYN is new")
}

// TestReuseIsTheLastResort checks that Connect reuses a port in TIME-WAIT only if all others are in
// use.
func TestReuseIsTheLastResort(t *testing.T) {
	s := newScript(t, Config{})
	remote := netip.AddrPortFrom(addrB, 9)
	one := Tuple{LocalAddr: addrA, RemoteAddr: addrB, LocalPort: firstPort + 77, RemotePort: 9}
	e := &timeWait{tuple: one, stamped: true, since: s.now, expires: s.now.Add(time.Minute)}
	s.h.timeWaits.byTuple[one] = e
	s.h.timeWaits.push(e)
	for range numPorts - 1 {
		c, err := s.h.Connect(s.now, remote, 0)
		require.NoError(t, err)
		require.NotEqual(t, one, c.Tuple())
	}
	_, err := s.h.Connect(s.now, remote, 0)
	require.ErrorIs(t, err, ErrNoPorts)
	s.now = s.now.Add(time.Second)
	c, err := s.h.Connect(s.now, remote, 0)
	require.NoError(t, err)
	assert.Equal(t, one, c.Tuple())
}

// TestReuseBetweenHosts opens the same connection repeatedly. The SYN ends the peer's TIME-WAIT
// each time, with timestamps or without.
func TestReuseBetweenHosts(t *testing.T) {
	for _, knobs := range []Knobs{{}, {NoTimestamps: true}} {
		w := newWorld(t, 1, wire{delay: time.Millisecond}, Config{Knobs: knobs})
		l, err := w.hosts[1].Listen(netip.AddrPortFrom(addrB, 80), 8)
		require.NoError(t, err)
		defer l.Close(w.now)
		for range 20 {
			var b *Conn
			w.accept = func(c *Conn) { b = c }
			a, err := w.hosts[0].Connect(w.now, netip.AddrPortFrom(addrB, 80), 1234)
			require.NoError(t, err)
			require.True(t, w.until(time.Minute, func() bool { return b != nil }))
			b.Close(w.now) // the server closes first, so it keeps the TIME-WAIT
			w.run(5 * time.Millisecond)
			a.Close(w.now)
			w.run(5 * time.Millisecond)
			require.Equal(t, StateClosed, a.State())
			require.Equal(t, 1, w.hosts[1].TimeWaits())
		}
	}
}
