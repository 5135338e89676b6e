package tcp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// chiSquared measures how far counts are from uniform. With 15 degrees of freedom a value above 44
// has a probability of one in ten thousand.
func chiSquared(counts []int) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	want, x := float64(total)/float64(len(counts)), 0.0
	for _, n := range counts {
		x += (float64(n) - want) * (float64(n) - want) / want
	}
	return x
}

func tupleTo(i int) Tuple {
	remote := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	return Tuple{LocalAddr: addrA, LocalPort: 50000, RemoteAddr: remote, RemotePort: 80}
}

// RFC 9293 §3.4.1: ISN = M + F(tuple, secret), where M is a clock with 4 µs ticks. F is
// unpredictable without the secret.
func TestRFC9293_3_4_1_SequenceNumbers(t *testing.T) {
	a, b := &[16]byte{1}, &[16]byte{2}
	now := clock.Time(time.Hour)
	one := tupleTo(1)
	for _, d := range []time.Duration{4 * time.Microsecond, 4 * time.Millisecond, time.Hour} {
		assert.Equal(t, initialSequence(a, now, &one)+uint32(d/(4*time.Microsecond)), initialSequence(a, now.Add(d), &one),
			"one tuple's numbers rise with the clock, whatever the others do")
	}
	assert.NotEqual(t, initialSequence(a, now, &one), initialSequence(b, now, &one), "keyed")
	for _, edit := range []func(t *Tuple){
		func(t *Tuple) { t.LocalPort++ }, func(t *Tuple) { t.RemotePort++ },
		func(t *Tuple) { t.LocalAddr = t.LocalAddr.Next() },
		func(t *Tuple) { t.RemoteAddr = t.RemoteAddr.Next() },
	} {
		other := one
		edit(&other)
		assert.NotEqual(t, initialSequence(a, now, &one), initialSequence(a, now, &other), "F depends on the whole tuple")
	}
	var high, low, step [16]int
	last := uint32(0)
	for i := range 16000 {
		to := tupleTo(i)
		n := initialSequence(a, now, &to)
		high[n>>28]++
		low[n&15]++
		step[(n-last)>>28]++
		last = n
	}
	assert.Less(t, chiSquared(high[:]), 44.0)
	assert.Less(t, chiSquared(low[:]), 44.0)
	assert.Less(t, chiSquared(step[:]), 44.0, "one tuple's ISN does not reveal the next one's")
}

// RFC 6056 §3.3.4, the double-hash algorithm: each destination has a secret offset, a few
// destinations share a counter, and every port is used once before any is reused. RFC 6335 §6: all
// are dynamic ports.
func TestRFC6056_3_3_4_Ports(t *testing.T) {
	s := newScript(t, Config{Secret: [16]byte{3}})
	seen := map[uint16]bool{}
	remote := netip.AddrPortFrom(addrB, 9)
	for range numPorts {
		c, err := s.h.Connect(s.now, remote, 0)
		require.NoError(t, err)
		p := c.Tuple().LocalPort
		require.False(t, seen[p])
		require.GreaterOrEqual(t, int(p), firstPort)
		seen[p] = true
	}
	_, err := s.h.Connect(s.now, remote, 0)
	require.ErrorIs(t, err, ErrNoPorts)
	_, err = s.h.Connect(s.now, netip.AddrPortFrom(addrB, 10), 0)
	require.NoError(t, err, "another destination has its own offset")

	first := func(secret byte) (ports []uint16) {
		p := ports4(secret)
		for i := range 16000 {
			port, ok := p.next(tupleTo(i), func(Tuple) bool { return true })
			require.True(t, ok)
			ports = append(ports, port)
		}
		return ports
	}
	var high, low, step [16]int
	all := first(1)
	for i, port := range all {
		n := port - firstPort
		high[n/(numPorts/16)]++
		low[n%16]++
		if i > 0 {
			step[(port-all[i-1])%numPorts/(numPorts/16)]++
		}
	}
	assert.Less(t, chiSquared(high[:]), 44.0)
	assert.Less(t, chiSquared(low[:]), 44.0)
	assert.Less(t, chiSquared(step[:]), 44.0, "one destination's port does not reveal another's")
	same := 0
	for i, port := range first(2) {
		if port == all[i] {
			same++
		}
	}
	assert.Less(t, same, 10, "another secret gives other ports")

	p := ports4(1)
	p.next(tupleTo(1), func(Tuple) bool { return true })
	free := func(t Tuple) bool { return t.LocalPort%2 == 0 }
	port, ok := p.next(tupleTo(1), free)
	require.True(t, ok)
	assert.Zero(t, port%2, "a port in use is skipped")
}

func ports4(secret byte) *ports { return &ports{secret: [16]byte{secret}} }
