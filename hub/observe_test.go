package hub

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TCP flags.
const (
	fin, syn, rst, ack = 1, 2, 4, 16
)

// segment returns a segment between two students, without a checksum.
func segment(from, to string, flags byte, seq, acked uint32, data int) []byte {
	src, dst := netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)
	b := make([]byte, 20+data)
	binary.BigEndian.PutUint16(b, src.Port())
	binary.BigEndian.PutUint16(b[2:], dst.Port())
	binary.BigEndian.PutUint32(b[4:], seq)
	binary.BigEndian.PutUint32(b[8:], acked)
	b[12], b[13] = 5<<4, flags
	return packet(src.Addr().String(), dst.Addr().String(), 6, b)
}

// The matrix counts each byte of data once, retransmissions, and how connections end.
func TestTransfers(t *testing.T) {
	t.Parallel()
	const ada, bob = "10.77.1.2:4000", "10.77.2.2:80"
	for _, c := range []struct {
		name     string
		segments [][]byte // segments after the handshake
		there    Cell
		back     Cell
	}{
		{
			name: "a retransmission", segments: [][]byte{
				segment(ada, bob, ack, 1, 1, 100),
				segment(ada, bob, ack, 1, 1, 100),
				segment(ada, bob, ack, 101, 1, 100),
			}, there: Cell{Packets: 5, Bytes: 200, Repeats: 1}, back: Cell{Packets: 1},
		},
		{
			name: "a gap that is filled", segments: [][]byte{
				segment(ada, bob, ack, 101, 1, 100),
				segment(ada, bob, ack, 1, 1, 100),
			}, there: Cell{Packets: 4, Bytes: 200, Repeats: 1}, back: Cell{Packets: 1},
		},
		{
			name: "FINs in both directions", segments: [][]byte{
				segment(ada, bob, ack, 1, 1, 100),
				segment(ada, bob, ack|fin, 101, 1, 0),
				segment(bob, ada, ack|fin, 1, 102, 0),
				segment(ada, bob, ack, 102, 2, 0),
			}, there: Cell{Packets: 5, Bytes: 100, Completed: 1}, back: Cell{Packets: 2},
		},
		{
			name: "a RST after data", segments: [][]byte{
				segment(ada, bob, ack, 1, 1, 100),
				segment(bob, ada, ack, 1, 101, 10),
				segment(bob, ada, rst|ack, 11, 101, 0),
			}, there: Cell{Packets: 3, Bytes: 100, Resets: 1},
			back: Cell{Packets: 3, Bytes: 10, Resets: 1},
		},
		{
			name: "a RST without data", segments: [][]byte{
				segment(bob, ada, rst|ack, 1, 1, 0),
			}, there: Cell{Packets: 2}, back: Cell{Packets: 2},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newClass(t, Config{})
				defer h.end()
				for _, b := range append([][]byte{
					segment(ada, bob, syn, 0, 0, 0),
					segment(bob, ada, syn|ack, 0, 1, 0),
					segment(ada, bob, ack, 1, 1, 0),
				}, c.segments...) {
					h.mu.Lock()
					h.observe(h.slots[b[18]], b, time.Now())
					h.mu.Unlock()
				}
				to := h.View().Students[0].To[1].Cell
				back := h.View().Students[1].To[0].Cell
				to.Last, back.Last = time.Time{}, time.Time{}
				assert.Equal(t, c.there, to)
				assert.Equal(t, c.back, back)
			})
		})
	}
}

// The hub follows a limited number of connections. It forgets finished and idle ones to make room.
func TestFlowLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newClass(t, Config{})
		defer h.end()
		now := time.Now()
		see := func(port uint16, flags byte) {
			from := netip.AddrPortFrom(netip.MustParseAddr("10.77.1.2"), port).String()
			h.observe(h.slots[2], segment(from, "10.77.2.2:80", flags, 1, 1, 10), now)
		}
		for i := range uint16(maxFlows) {
			see(1+i, ack)
		}
		bytes := func() uint64 { return h.cells[pair{1, 2}].Bytes }
		assert.Len(t, h.flows, maxFlows)
		assert.EqualValues(t, maxFlows*10, bytes())
		see(60_000, ack)
		assert.EqualValues(t, maxFlows*10, bytes(), "not followed")
		see(1, rst|ack)
		see(60_000, ack)
		assert.Len(t, h.flows, maxFlows, "the one that was reset is forgotten")
		now = now.Add(2 * flowIdle)
		see(60_001, ack)
		assert.Len(t, h.flows, 1, "idle ones are forgotten")
		assert.EqualValues(t, maxFlows+4, h.cells[pair{1, 2}].Packets)
	})
}
