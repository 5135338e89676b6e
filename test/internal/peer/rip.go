package peer

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Commands and limits of the course's RIP.
const (
	RIPRequest  = 1
	RIPResponse = 2
	RIPInfinity = 16
)

// RIPEntry is a destination of the course's RIP.
type RIPEntry struct {
	Cost int
	Dst  netip.Prefix
}

// RIP is a message of the course's RIP.
type RIP struct {
	Command int
	Entries []RIPEntry
	// Width is the length of an entry in bytes: 12, or 8 without a mask.
	Width int
}

// Bytes encodes the message.
func (m RIP) Bytes() []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(m.Command))
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Entries)))
	for _, e := range m.Entries {
		b = binary.BigEndian.AppendUint32(b, uint32(e.Cost))
		b = append(b, e.Dst.Addr().AsSlice()...)
		if m.Width == 12 {
			b = binary.BigEndian.AppendUint32(b, ^uint32(0)<<(32-e.Dst.Bits()))
		}
	}
	return b
}

// ParseRIP parses a message and derives the width of its entries from its length.
func ParseRIP(b []byte) (m RIP, ok bool) {
	if len(b) < 4 {
		return m, false
	}
	m.Command = int(binary.BigEndian.Uint16(b))
	n := int(binary.BigEndian.Uint16(b[2:]))
	if n == 0 {
		return m, len(b) == 4
	}
	m.Width = (len(b) - 4) / n
	if m.Width != 8 && m.Width != 12 || len(b) != 4+n*m.Width {
		return m, false
	}
	for b = b[4:]; len(b) > 0; b = b[m.Width:] {
		bits := 32
		if m.Width == 12 {
			mask := binary.BigEndian.Uint32(b[8:])
			for bits = 0; mask&(1<<31) != 0; mask <<= 1 {
				bits++
			}
		}
		m.Entries = append(m.Entries, RIPEntry{
			Cost: int(binary.BigEndian.Uint32(b)),
			Dst:  netip.PrefixFrom(netip.AddrFrom4([4]byte(b[4:])), bits),
		})
	}
	return m, true
}

// SendRIP sends a message to the node.
func (w *Wire) SendRIP(from, to netip.Addr, m RIP) {
	w.SendPacket(Packet{TTL: 1, Proto: ProtoRIP, Src: from, Dst: to, Payload: m.Bytes()})
}

// AwaitRIP waits for a message that satisfies want. Every message before it must be valid.
func (w *Wire) AwaitRIP(t *testing.T, within time.Duration, what string, want func(RIP) bool) RIP {
	t.Helper()
	until := time.Now().Add(within)
	for {
		p, ok := w.Receive(until)
		if !ok {
			t.Fatalf("no RIP message within %v: %s", within, what)
		}
		if p.Proto != ProtoRIP {
			continue
		}
		m, ok := ParseRIP(p.Payload)
		require.True(t, ok, "a malformed RIP message: %x", p.Payload)
		require.LessOrEqual(t, len(m.Entries), 64)
		if want(m) {
			return m
		}
	}
}

// Cost returns the cost of a destination in the message, or false if it is not listed.
func (m RIP) Cost(dst netip.Prefix) (int, bool) {
	for _, e := range m.Entries {
		if e.Dst == dst {
			return e.Cost, true
		}
	}
	return 0, false
}
