package netem_test

import (
	"encoding/binary"
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
)

const many = 100_000

// delays sends packets so far apart that no packet waits for another. It returns each packet's
// delay.
func delays(t *testing.T, cfg netem.Config, n int) []time.Duration {
	t.Helper()
	l := newLink(t, cfg)
	list := make([]time.Duration, 0, n)
	now := clock.Time(1)
	for i := range uint64(n) {
		put(l, now, i, 40)
		at := l.Deadline()
		_, tag, ok := l.Output(at)
		require.True(t, ok)
		require.Equal(t, i, tag)
		list = append(list, at.Sub(now))
		now = now.Add(time.Second)
	}
	return list
}

func moments(list []time.Duration) (mean, sd float64) {
	for _, d := range list {
		mean += float64(d)
	}
	mean /= float64(len(list))
	for _, d := range list {
		sd += (float64(d) - mean) * (float64(d) - mean)
	}
	return mean, math.Sqrt(sd / float64(len(list)-1))
}

func TestUniformJitter(t *testing.T) {
	const base, width = 50 * time.Millisecond, 10 * time.Millisecond
	list := delays(t, netem.Config{Delay: base, Jitter: netem.UniformJitter(width)}, many)
	mean, sd := moments(list)
	// This is the standard deviation of a uniform variable over twice the width.
	want := float64(width) / math.Sqrt(3)
	assert.InDelta(t, float64(base), mean, 4*want/math.Sqrt(many))
	assert.InEpsilon(t, want, sd, 0.01)
	least, most := list[0], list[0]
	for _, d := range list {
		least, most = min(least, d), max(most, d)
	}
	assert.GreaterOrEqual(t, least, base-width)
	assert.LessOrEqual(t, most, base+width)
	assert.Less(t, least, base-width*99/100)
	assert.Greater(t, most, base+width*99/100)
}

func TestNormalJitter(t *testing.T) {
	const base = 100 * time.Millisecond
	for _, sigma := range []time.Duration{time.Microsecond, time.Millisecond, 15 * time.Millisecond} {
		list := delays(t, netem.Config{Delay: base, Jitter: netem.NormalJitter(sigma)}, many)
		mean, sd := moments(list)
		assert.InDelta(t, float64(base), mean, 4*float64(sigma)/math.Sqrt(many)+1)
		assert.InEpsilon(t, float64(sigma), sd, 0.02)
		for _, z := range []float64{-2, -1, 0, 0.5, 1.5, 2.5} {
			below := 0
			for _, d := range list {
				if float64(d-base) <= z*float64(sigma) {
					below++
				}
			}
			assert.InDelta(t, phi(z), float64(below)/many, 0.005, "share below %v deviations", z)
		}
	}
}

// phi is the distribution function of the normal distribution.
func phi(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }

func TestDelayIsNeverNegative(t *testing.T) {
	for _, d := range delays(t, netem.Config{Jitter: netem.NormalJitter(time.Millisecond)}, 1000) {
		assert.GreaterOrEqual(t, d, time.Duration(0))
	}
}

// Two packets sent δ apart swap with the probability Φ(-δ/(σ√2)) if Overtaking is set, and never
// without it.
func TestOvertaking(t *testing.T) {
	const sigma, pairs = time.Millisecond, 20_000
	for _, gap := range []time.Duration{0, sigma / 2, sigma, 2 * sigma} {
		for _, may := range []bool{true, false} {
			l := newLink(t, netem.Config{
				Delay: 50 * time.Millisecond, Jitter: netem.NormalJitter(sigma), Overtaking: may,
			})
			swapped, now := 0, clock.Time(1)
			for range pairs {
				put(l, now, 1, 40)
				put(l, now.Add(gap), 2, 40)
				list := drain(l, now.Add(gap))
				require.Len(t, list, 2)
				if list[0].tag == 2 {
					swapped++
				}
				now = now.Add(time.Second)
			}
			want := 0.0
			if may {
				want = phi(-float64(gap) / (float64(sigma) * math.Sqrt2))
			}
			within(t, swapped, pairs, want, "swapped")
		}
	}
}

func TestReorder(t *testing.T) {
	const share = 0.05
	l := newLink(t, netem.Config{
		Delay: 10 * time.Millisecond, Reorder: netem.Reorder{Share: share},
	})
	now, early := clock.Time(1), 0
	for i := range uint64(many) {
		put(l, now, i, 40)
		for _, tag, ok := l.Output(now); ok; _, tag, ok = l.Output(now) {
			if tag == i {
				early++ // it arrives before the ten packets in transit
			}
		}
		now = now.Add(time.Millisecond)
		l.Advance(now)
	}
	within(t, early, many, share, "early")
	assert.Equal(t, uint64(early), l.Counters().Reordered)

	l = newLink(t, netem.Config{
		Delay: 10 * time.Millisecond, Reorder: netem.Reorder{Share: share, Late: 5 * time.Millisecond},
	})
	late := 0
	for i := range uint64(many) {
		at := clock.Time(1 + i*uint64(time.Millisecond))
		l.Advance(at)
		for _, tag, ok := l.Output(at); ok; _, tag, ok = l.Output(at) {
			took := at.Sub(clock.Time(1 + tag*uint64(time.Millisecond)))
			require.GreaterOrEqual(t, took, 10*time.Millisecond)
			require.LessOrEqual(t, took, 16*time.Millisecond)
			if took > 10*time.Millisecond {
				late++
			}
		}
		put(l, at, i, 40)
	}
	within(t, late, many, share, "late")
}

func TestDuplicate(t *testing.T) {
	const share = 0.1
	l := newLink(t, netem.Config{Duplicate: share})
	copies := 0
	for i := range uint64(many) {
		put(l, 1, i, 40)
		n := 0
		for data, tag, ok := l.Output(1); ok; data, tag, ok = l.Output(1) {
			require.Equal(t, i, tag)
			require.Equal(t, byte(i), data[7])
			n++
		}
		copies += n - 1
	}
	within(t, copies, many, share, "copies")
	assert.Equal(t, uint64(copies), l.Counters().Duplicated)
}

// packet returns an IPv4 packet with a TCP header of 32 bytes.
func packet(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*31 + 7)
	}
	b[0], b[9], b[20+12] = 0x45, 6, 8<<4
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], ^checksum.Fold(checksum.Sum(b[:20], 0)))
	return b
}

// Corruption flips the configured number of bits in the configured part of a packet, and its
// Internet checksum always detects it.
func TestCorrupt(t *testing.T) {
	const headers, size = 52, 100
	for _, c := range []netem.Corrupt{
		{Share: 1},
		{Share: 1, Bits: 2},
		{Share: 1, Bits: 3, Where: netem.Headers},
		{Share: 1, Bits: 2, Where: netem.Payload},
		{Share: 1, Bits: 16, Where: netem.Payload},
	} {
		l := newLink(t, netem.Config{Corrupt: c})
		whole := packet(size)
		sum := checksum.Fold(checksum.Sum(whole, 0))
		where := map[int]int{}
		for range 20_000 {
			l.Input(1, 0, [][]byte{whole})
			data, _, ok := l.Output(1)
			require.True(t, ok)
			turned, header := 0, false
			for i := range data {
				if d := data[i] ^ whole[i]; d != 0 {
					turned += bits.OnesCount8(d)
					where[i]++
					header = header || i < 20
				}
			}
			if n := int(data[0]&15) * 4; header && data[0]>>4 == 4 && n >= 20 && n <= size {
				require.False(t, checksum.Verify(data[:n], 0), "%x", data)
			}
			require.Positive(t, turned)
			if c.Bits < 2 {
				require.Equal(t, 1, turned)
			}
			require.NotEqual(t, sum, checksum.Fold(checksum.Sum(data, 0)), "%x", data)
		}
		first, last := 0, size
		switch c.Where {
		case netem.Headers:
			last = headers
		case netem.Payload:
			first = headers
		case netem.Anywhere:
		}
		for i := range size {
			assert.Equal(t, i >= first && i < last, where[i] > 0, "%+v: byte %d", c, i)
		}
	}
}

// No checksum covers the version, the traffic class, the flow label, the next header and the hop
// limit of an IPv6 packet. The upper layer's checksum always detects corruption elsewhere.
func TestCorruptIPv6(t *testing.T) {
	whole := packet(100)
	whole[0] = 0x60
	covered := func(b []byte) uint16 { return checksum.Fold(checksum.Sum(b[8:], checksum.Sum(b[4:6], 0))) }
	for _, n := range []int{1, 3, 4} {
		l := newLink(t, netem.Config{Corrupt: netem.Corrupt{Share: 1, Bits: n}})
		free := 0
		for range 20_000 {
			l.Input(1, 0, [][]byte{whole})
			data, _, _ := l.Output(1)
			require.NotEqual(t, covered(whole), covered(data), "%x", data)
			if data[7] != whole[7] {
				free++
			}
		}
		assert.Positive(t, free, "the hop limit may change as well")
	}
}

func TestCorruptAnyPacket(t *testing.T) {
	udp := packet(60)
	udp[9] = 17
	short := packet(60)[:30] // an incomplete TCP header
	other := packet(60)
	other[9] = 200
	lies := packet(60)
	lies[0] = 0x4f // a header length equal to the packet's
	for name, tc := range map[string]struct {
		packet []byte
		header int
	}{
		"tcp": {packet(60), 52}, "udp": {udp, 28}, "short tcp": {short, 30}, "other": {other, 20},
		"lies": {lies, 60}, "one byte": {[]byte{7}, 1}, "ipv6": {[]byte{0x60, 1, 2, 3}, 4},
	} {
		l := newLink(t, netem.Config{Corrupt: netem.Corrupt{Share: 1, Where: netem.Headers}})
		most := 0
		for range 5000 {
			l.Input(1, 0, [][]byte{tc.packet})
			data, _, _ := l.Output(1)
			for i := range data {
				if data[i] != tc.packet[i] {
					most = max(most, i+1)
				}
			}
		}
		assert.Equal(t, tc.header, most, name)
	}
	l := newLink(t, netem.Config{Corrupt: netem.Corrupt{Share: 1}, Truncate: 1})
	l.Input(1, 0, nil)
	data, _, ok := l.Output(1)
	assert.True(t, ok && len(data) == 0, "nothing to corrupt")
}

func TestTruncate(t *testing.T) {
	const share, size = 0.25, 50
	l := newLink(t, netem.Config{Truncate: share})
	whole := packet(size)
	lengths := make([]int, size+1)
	for range many {
		l.Input(1, 0, [][]byte{whole})
		data, _, _ := l.Output(1)
		require.Equal(t, whole[:len(data)], data)
		lengths[len(data)]++
	}
	assert.Zero(t, lengths[0])
	within(t, many-lengths[size], many, share, "truncated")
	for n := 1; n < size; n++ {
		within(t, lengths[n], many, share/(size-1), "cut to the same length")
	}
	_, held := l.Inside()
	assert.Zero(t, held)
}
