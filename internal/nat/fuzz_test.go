package nat_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/nat"
)

// FuzzTranslate passes packets in both directions. Translation must not panic or change a packet's
// length. If all checksums of a packet are right, including that of a header in an ICMP error, they
// must be right afterwards.
func FuzzTranslate(f *testing.F) {
	sent := datagram(hostA, server)
	f.Add(sent, false, uint8(0))
	f.Add(segment(server, at("198.51.100.1:8080"), syn), true, uint8(1))
	f.Add(quoted(server.Addr(), public, datagram(at("198.51.100.1:5000"), server)), true, uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, inward bool, behavior uint8) {
		if len(b) < 20 || len(b) > 4096 {
			return
		}
		b = append([]byte(nil), b...)
		size := max(int(b[0]&15)*4, 20)
		if size > len(b) {
			return // the router drops it
		}
		b[0] = 0x40 | byte(size/4)
		if inward {
			to := public.As4()
			copy(b[16:], to[:])
		}
		b[10], b[11] = 0, 0
		binary.BigEndian.PutUint16(b[10:], checksum.Checksum(b[:size]))
		kind := nat.Behavior(behavior % 3)
		n, err := nat.New(nat.Config{
			Addr: public, Mapping: kind, Filtering: kind, Rand: rand.New(rand.NewPCG(1, 2)),
			Forwards: []nat.Forward{{TCP: true, Port: 8080, To: hostA}},
		})
		require.NoError(t, err)
		for _, p := range [][]byte{
			datagram(hostA, server), segment(hostA, server, syn),
			message(hostA.Addr(), server.Addr(), 8, 0, 5000, nil),
		} {
			if m, v := n.Outbound(1, p); v == nat.Translate {
				m.Apply(1, p)
			}
		}
		good, inner := checksumsValid(b, size)
		if n.Hairpins(b) && !inward {
			n.Info()
		}
		translate := n.Outbound
		if inward {
			translate = n.Inbound
		}
		m, v := translate(2, b)
		if v != nat.Translate {
			return
		}
		was := len(b)
		m.Apply(2, b)
		require.Len(t, b, was)
		assert.True(t, checksum.Verify(b[:size], 0))
		now, innerNow := checksumsValid(b, size)
		assert.Equal(t, good, now, "the transport's checksum")
		assert.Equal(t, inner, innerNow, "the quoted header's checksum")
		n.Advance(n.Deadline())
	})
}

// checksumsValid reports whether the checksum of a packet's transport header is right, and whether
// the checksum of the header that an ICMP error quotes is right.
func checksumsValid(b []byte, size int) (transport, inner bool) {
	seg := b[size:]
	switch b[9] {
	case tcp:
		return checksum.Verify(seg, pseudo(b, len(seg))), false
	case udp:
		return len(seg) > 7 && seg[6]|seg[7] != 0 && checksum.Verify(seg, pseudo(b, len(seg))), false
	}
	if len(seg) >= 28 {
		if n := int(seg[8]&15) * 4; n >= 20 && 8+n <= len(seg) {
			inner = checksum.Verify(seg[8:8+n], 0)
		}
	}
	return checksum.Verify(seg, 0), inner
}

func pseudo(b []byte, n int) uint64 {
	src, dst := addrAt(b[12:]), addrAt(b[16:])
	return checksum.PseudoHeader(src, dst, b[9], n)
}
