package sim_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// narrowing returns a line over three routers. The MTU shrinks up to the third link.
func narrowing(t *testing.T, seed uint64, c netem.Config) *sim.Line {
	t.Helper()
	wire := func(mtu int) sim.LinkConfig { return sim.LinkConfig{AB: c, BA: c, MTU: mtu} }
	l, err := sim.NewLine(seed, sim.LineConfig{
		Routers: 3, Links: []sim.LinkConfig{wire(1400), wire(576), wire(68), wire(1400)},
	})
	require.NoError(t, err)
	return l
}

// numbered returns a datagram of 60 kB whose content identifies the number i.
func numbered(i int) []byte {
	p := make([]byte, 60_000)
	for at := 0; at < len(p); at += 4 {
		binary.BigEndian.PutUint32(p[at:], uint32(i)<<16|uint32(at/4))
	}
	return p
}

// sendAll sends datagrams over the line in both directions. It checks that each datagram arrives as
// sent, and returns how many arrived.
func sendAll(t *testing.T, l *sim.Line, datagrams int) (arrived int) {
	t.Helper()
	right, err := l.Right.Stack().Datagrams().Bind(l.Address(53))
	require.NoError(t, err)
	left, err := l.Left.Stack().Datagrams().Dial(netip.AddrPort{}, l.Address(53))
	require.NoError(t, err)
	p := make([]byte, 65_536)
	take := func(s *udp.Socket, i int) {
		got := map[int]bool{}
		for {
			r, ok := udp.Dequeue(s.Rx(), p)
			if !ok {
				return
			}
			k := int(binary.BigEndian.Uint32(p) >> 16)
			require.True(t, bytes.Equal(numbered(k), p[:r.Len]), "datagram %d", k)
			require.LessOrEqual(t, k, i)
			require.False(t, got[k], "datagram %d arrived twice", k)
			got[k] = true
			arrived++
		}
	}
	for i := range datagrams {
		if i%2 == 0 {
			require.NoError(t, l.Left.Stack().Datagrams().Send(l.Now(), left, right.Local(), numbered(i)))
			l.Left.Settle()
		} else {
			require.NoError(t, l.Right.Stack().Datagrams().Send(l.Now(), right, left.Local(), numbered(i)))
			l.Right.Settle()
		}
		l.Run(200 * time.Millisecond)
		take(right, i)
		take(left, i)
	}
	return arrived
}

// held returns the bytes of incomplete datagrams that both hosts hold, and how many timed out.
func held(l *sim.Line) (bytes int, timedOut uint64) {
	for _, h := range []*sim.Host{l.Left, l.Right} {
		info := h.Stack().Fragments()
		bytes += info.Bytes
		timedOut += info.TimedOut
	}
	return bytes, timedOut
}

// RFC 791 §3.2: a datagram of 60 kB is 44 fragments on the first link and 1,308 on the third. The
// destination reassembles them in any order and with duplicates, and no router does.
func TestLongDatagramsOverThreeRouters(t *testing.T) {
	l := narrowing(t, 11, netem.Config{
		Delay: time.Millisecond, Jitter: netem.UniformJitter(900 * time.Microsecond), Overtaking: true,
		Duplicate: 0.05,
	})
	const datagrams = 40
	assert.Equal(t, datagrams, sendAll(t, l, datagrams))
	for _, r := range l.Routers {
		assert.Zero(t, r.Stack().Fragments().Fragments, "RFC 1812 §5.2.6: no reassembly")
	}
	duplicates := l.Left.Stack().Fragments().Duplicates + l.Right.Stack().Fragments().Duplicates
	assert.Greater(t, duplicates, uint64(1000))

	// Late duplicates start a datagram that is never completed, and that times out.
	l.Run(time.Minute)
	bytes, timedOut := held(l)
	assert.Zero(t, bytes)
	assert.NotZero(t, timedOut)
}

// A lost, truncated or corrupted fragment loses its datagram, and no wrong datagram arrives.
func TestLongDatagramsOverLossyLinks(t *testing.T) {
	l := narrowing(t, 12, netem.Config{
		Delay: time.Millisecond, Jitter: netem.UniformJitter(900 * time.Microsecond), Overtaking: true,
		Duplicate: 0.01, Truncate: 1e-4, Corrupt: netem.Corrupt{Share: 1e-4},
		Loss: netem.UniformLoss(1e-4),
	})
	const datagrams = 100
	arrived := sendAll(t, l, datagrams)
	assert.Greater(t, arrived, datagrams/4)
	assert.Less(t, arrived, datagrams)
	l.Run(time.Minute) // the ICMP errors about incomplete datagrams are fragmented, too
	bytes, timedOut := held(l)
	assert.Zero(t, bytes)
	assert.GreaterOrEqual(t, timedOut, uint64(datagrams-arrived)/2)
	drops := map[string]uint64{}
	for _, h := range l.Hosts() {
		for _, f := range h.Stack().Interfaces().Infos() {
			for _, d := range append(f.In.Drops, f.Out.Drops...) {
				drops[d.Reason] += d.Packets
			}
		}
	}
	for _, reason := range []ip.DropReason{
		ip.DropTotalLength, ip.DropHeaderChecksum, ip.DropFragmentTimeout,
	} {
		assert.NotZero(t, drops[reason.String()], "%v: %v", reason, drops)
	}
}
