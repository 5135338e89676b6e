package tcp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
)

func TestRFC1191_7_Plateaus(t *testing.T) {
	for _, test := range []struct{ length, want int }{
		{65535, 32000}, {1500, 1492}, {1492, 1006}, {1400, 1006}, {300, 296}, {296, 68}, {20, 68},
	} {
		assert.Equal(t, test.want, Plateau(test.length), test.length)
	}
}

// wide1360 returns a connection whose path and peer accept 1360-byte segments.
func wide1360(t *testing.T, k Knobs) *script {
	t.Helper()
	s := newScript(t, Config{Knobs: k})
	s.accept(Options{MSS: 1360, SACKPermitted: true, HasWindowScale: true})
	return s
}

// RFC 1191 §6: a report shortens the segments at once. New connections to the host use the path MTU
// (§6.2) for ten minutes (§6.3).
func TestRFC1191_6_PathMTU(t *testing.T) {
	s := wide1360(t, Knobs{MTUProbing: MTUProbingOff})
	s.write(2720)
	s.expect(ACK, 1, 1, 1360)
	s.expect(PSH|ACK, 1361, 1, 1360)
	s.h.TooBig(s.now, s.tuple, s.iss+1, 1040)
	cwnd := s.c.Info().SndCwnd
	s.expect(ACK, 1, 1, 1000)
	s.out = nil
	assert.Equal(t, cwnd, s.c.Info().SndCwnd, "RFC 1191 §6.4: not congestion")
	assert.Equal(t, 1040, s.c.Info().PMTU)
	assert.Equal(t, 1040, s.h.PathMTU(s.now, s.tuple.RemoteAddr))
	s.collect()
	s.out = nil
	s.send(ACK, 1, 2721, 0)

	s.tuple.RemotePort++
	s.l.Close(s.now)
	old := s.c
	s.accept(Options{MSS: 1360})
	assert.Equal(t, 1000, s.c.Info().SndMSS, "all connections to the host use the path MTU")
	assert.Equal(t, 1360, int(s.c.snd.path.offer()), "the MSS offered does not change")

	s.now = s.now.Add(mtuAge)
	assert.Zero(t, s.h.PathMTU(s.now, s.tuple.RemoteAddr))
	s.write(3000)
	s.collect()
	assert.Equal(t, 1360, s.out[0].n, "after ten minutes the sender tries the larger MTU")
	assert.Equal(t, 1000, old.Info().SndMSS, "an idle connection does not probe")
}

func TestRFC1191_3_InvalidReports(t *testing.T) {
	s := wide1360(t, Knobs{})
	s.write(1360)
	s.expect(PSH|ACK, 1, 1, 1360)
	s.h.TooBig(s.now, s.tuple, s.iss+5000, 1000) // RFC 5927 §4.1: no data in flight at that number
	s.h.TooBig(s.now, s.tuple, s.iss-5000, 1000)
	s.h.TooBig(s.now, s.tuple, s.iss+1, 67)   // RFC 791 §3.2: below the minimum MTU
	s.h.TooBig(s.now, s.tuple, s.iss+1, 1400) // the MTU is not smaller
	other := s.tuple
	other.RemotePort++
	s.h.TooBig(s.now, other, s.iss+1, 1000)
	assert.Equal(t, 1400, s.c.Info().PMTU)
	s.h.TooBig(s.now, s.tuple, s.iss+1, 68)
	assert.Equal(t, 68-ipHeaderSize-HeaderSize, s.c.Info().SndMSS, "68 bytes is the minimum MTU")
}

// RFC 5927 §7.2: the host accepts a report that contradicts the acknowledged data only after a
// timeout confirms it.
func TestRFC5927_7_2_CounterMeasure(t *testing.T) {
	s := wide1360(t, Knobs{MTUProbing: MTUProbingOff})
	s.write(1360)
	s.collect()
	s.out = nil
	s.send(ACK, 1, 1361, 0) // a segment of 1360 bytes has arrived
	s.write(2720)
	s.collect()
	s.out = nil
	s.h.TooBig(s.now, s.tuple, s.iss+1361, 600)
	assert.Equal(t, 1400, s.c.Info().PMTU, "the report may be forged")
	s.send(ACK, 1, 4081, 0)
	s.write(1360)
	s.collect()
	s.wait(3 * time.Second)
	assert.Equal(t, 1400, s.c.Info().PMTU, "the report was forged: the segment has arrived")
	s.out = nil
	s.send(ACK, 1, 5441, 0)

	s.write(2720)
	s.collect()
	s.out = nil
	s.h.TooBig(s.now, s.tuple, s.iss+5441, 600)
	assert.Equal(t, 1400, s.c.Info().PMTU)
	s.wait(5 * time.Second)
	assert.Equal(t, 600, s.c.Info().PMTU, "the timeout confirms the report")
}

// blackHole is a world whose path silently drops packets longer than mtu bytes.
func blackHole(t *testing.T, mtu int, k Knobs) *world {
	t.Helper()
	w := newWorld(t, 1, wire{delay: 5 * time.Millisecond, bytesPerSec: 5e6}, Config{Knobs: k})
	w.tap = func(from int, h Header, n int) bool { return ipHeaderSize+h.Size()+n > mtu }
	return w
}

// RFC 4821 §7.7: the sender detects that full segments vanish without a report, and then finds the
// largest segments that arrive.
func TestRFC4821_7_7_BlackHole(t *testing.T) {
	w := blackHole(t, 1300, Knobs{})
	a, b := w.connect()
	s := newStream(a, b, 3<<20)
	require.True(t, w.transfer(5*time.Minute, s), "%+v", a.Info())
	i := a.Info()
	assert.InDelta(t, 1300, i.PMTU, mtuStep, "the search ends near the path's MTU")
	assert.LessOrEqual(t, i.PMTU, 1300)
	assert.Equal(t, i.PMTU, w.hosts[0].PathMTU(w.now, addrB))

	w = blackHole(t, 700, Knobs{})
	a, b = w.connect()
	s = newStream(a, b, 3<<20)
	require.True(t, w.transfer(5*time.Minute, s), "%+v", a.Info())
	assert.InDelta(t, 700, a.Info().PMTU, mtuStep, "the search also goes below the base")
}

func TestBlackHoleWithoutProbing(t *testing.T) {
	testenv.NeedNoRace(t)
	w := blackHole(t, 1300, Knobs{MTUProbing: MTUProbingOff})
	a, b := w.connect()
	s := newStream(a, b, 1<<20)
	assert.False(t, w.transfer(time.Minute, s))
	assert.Equal(t, 1400, a.Info().PMTU)
}

// RFC 8899 §5.3: if enabled, the search goes upwards from the base. A lost probe costs one segment
// and does not reduce the window.
func TestRFC8899_5_3_Search(t *testing.T) {
	fixed := Knobs{MTUProbing: MTUProbingOn, Recovery: Recovery{Congestion: "fixed", FixedWindow: 64 << 10}}
	w := blackHole(t, 1250, fixed)
	a, b := w.connect()
	assert.Equal(t, baseMTU, a.Info().PMTU)
	s := newStream(a, b, 12<<20)
	require.True(t, w.transfer(time.Minute, s), "%+v", a.Info())
	i := a.Info()
	assert.InDelta(t, 1250, i.PMTU, mtuStep)
	assert.Zero(t, i.TotalRTO)
	assert.Zero(t, i.FastRecoveries, "RFC 4821 §7.6.2: the loss of a probe is not congestion")
	assert.NotZero(t, i.TotalRetrans)

	w = blackHole(t, 1400, fixed)
	a, b = w.connect()
	s = newStream(a, b, 4<<20)
	require.True(t, w.transfer(time.Minute, s), "%+v", a.Info())
	assert.Equal(t, 1400, a.Info().PMTU)
	assert.Zero(t, a.Info().TotalRetrans, "the first probe restored the MTU")
}

// RFC 8899 §5.1.2: the search gives up a size after exactly three lost probes.
func TestRFC8899_5_1_2_MaxProbes(t *testing.T) {
	w := blackHole(t, 1250, Knobs{
		MTUProbing: MTUProbingOn, Recovery: Recovery{Congestion: "fixed", FixedWindow: 64 << 10},
	})
	tries := map[int]int{}
	w.tap = func(_ int, h Header, n int) bool {
		size := ipHeaderSize + h.Size() + n
		if size > 1250 {
			tries[size]++
		}
		return size > 1250
	}
	a, b := w.connect()
	require.True(t, w.transfer(time.Minute, newStream(a, b, 12<<20)), "%+v", a.Info())
	require.NotEmpty(t, tries)
	require.Contains(t, tries, 1400, "the search tries the largest MTU first")
	for size, n := range tries {
		assert.Equal(t, 3, n, "%d bytes", size)
	}
}

// TestStalledPeerIsNoBlackHole checks that the first probe restores the path MTU when a peer
// answers again after a few timeouts.
func TestStalledPeerIsNoBlackHole(t *testing.T) {
	w := newWorld(t, 1, wire{delay: 5 * time.Millisecond, bytesPerSec: 5e6}, Config{})
	a, b := w.connect()
	from, to := w.now.Add(200*time.Millisecond), w.now.Add(9*time.Second)
	w.tap = func(int, Header, int) bool { return w.now > from && w.now < to }
	s := newStream(a, b, 8<<20)
	require.True(t, w.transfer(time.Minute, s), "%+v", a.Info())
	assert.Equal(t, 1400, a.Info().PMTU)
}

// TestProbeReportedTooBig checks that a report about a probe (RFC 1191) ends the search.
func TestProbeReportedTooBig(t *testing.T) {
	w := newWorld(t, 1, wire{delay: 5 * time.Millisecond, bytesPerSec: 5e6},
		Config{Knobs: Knobs{MTUProbing: MTUProbingOn}})
	w.tap = func(from int, h Header, n int) bool {
		big := ipHeaderSize+h.Size()+n > 1180
		if big && from == 0 {
			c := w.hosts[0].all.first
			w.hosts[0].TooBig(w.now, c.tuple, h.Seq, 1180)
		}
		return big
	}
	a, b := w.connect()
	s := newStream(a, b, 4<<20)
	require.True(t, w.transfer(time.Minute, s), "%+v", a.Info())
	assert.Equal(t, 1180, a.Info().PMTU)
	assert.Equal(t, uint64(1), a.Info().TotalRetrans)
	assert.Zero(t, a.Info().FastRecoveries)
}

func TestPerHostEntriesAreBounded(t *testing.T) {
	var m perHost[int]
	now := clock.Time(time.Hour)
	host := func(i int) [4]byte { return [4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)} }
	for i := range maxHosts + 10 {
		m.learn(now, netip.AddrFrom4(host(i)), 1000, mtuAge)
		m.learn(now, netip.AddrFrom4(host(i)), 900, mtuAge)
	}
	assert.Len(t, m.byHost, maxHosts)
	assert.Len(t, m.order, maxHosts)
	mtu, _ := m.find(now, netip.AddrFrom4(host(9)))
	assert.Zero(t, mtu, "the oldest entry was evicted")
	mtu, until := m.find(now, netip.AddrFrom4(host(10)))
	assert.Equal(t, 900, mtu)
	assert.Equal(t, now.Add(mtuAge), until)
	m.forget(netip.AddrFrom4(host(10)))
	mtu, _ = m.find(now, netip.AddrFrom4(host(10)))
	assert.Zero(t, mtu)
}
