package hub

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
)

const (
	maxFlows = 4096
	// flowIdle is how long a connection must be silent before the hub may forget it.
	flowIdle = time.Minute
)

// pair is a direction between two students, given by their slots.
type pair struct{ from, to int }

// Cell counts what the hub forwarded from one student to another.
type Cell struct {
	Packets   uint64    `json:"packets"`
	Last      time.Time `json:"last,omitzero"`
	Bytes     uint64    `json:"tcp_bytes"` // TCP payload; each byte counts once
	Completed uint64    `json:"completed"` // connections that carried data and closed with FINs
	Resets    uint64    `json:"resets"`    // connections with data that a RST ended
	Repeats   uint64    `json:"retransmissions"`
}

// flowKey names a connection by its ends, the smaller one first.
type flowKey struct{ a, b netip.AddrPort }

// flow is a connection between two students.
type flow struct {
	follower capture.Follower
	last     time.Time
	over     bool
	bytes    [2]uint64 // bytes from a, and from b
}

// observe counts a packet that the hub sends to a student.
func (h *Hub) observe(to *student, packet []byte, now time.Time) {
	var facts capture.Facts
	facts.Parse(packet)
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return
	}
	from := h.owner(netip.AddrFrom4([4]byte(packet[12:16])))
	if from == nil || from == to {
		return // sent by the hub itself
	}
	if !h.subnet(to.Slot).Contains(netip.AddrFrom4([4]byte(packet[16:20]))) {
		return
	}
	c := h.cell(pair{from.Slot, to.Slot})
	c.Packets++
	c.Last = now
	if at, ok := facts.Flow(true); ok {
		h.follow(at, packet, &facts, c, now)
	}
}

func (h *Hub) cell(p pair) *Cell {
	c := h.cells[p]
	if c == nil {
		c = &Cell{}
		h.cells[p] = c
	}
	return c
}

// follow counts a segment of a connection.
func (h *Hub) follow(at capture.Flow, packet []byte, facts *capture.Facts, c *Cell,
	now time.Time,
) {
	key, side := flowKey{at.Local, at.Remote}, 0
	if at.Remote.Compare(at.Local) < 0 {
		key, side = flowKey{at.Remote, at.Local}, 1
	}
	f := h.flows[key]
	if f == nil || f.over && packetOpens(facts, packet) {
		if f == nil && len(h.flows) >= maxFlows && !h.forgetFlows(now) {
			return // the hub does not follow this connection
		}
		f = &flow{}
		h.flows[key] = f
	}
	s, ok := f.follower.Follow(packet, facts, side == 0, false)
	if !ok {
		return
	}
	f.last = now
	if s.Repeats {
		c.Repeats++
	}
	// the hub sees this data for the first time, in order or in a gap
	if s.Marks&capture.MarkRetransmission == 0 {
		c.Bytes += uint64(s.Length)
		f.bytes[side] += uint64(s.Length)
	}
	if f.over || !f.follower.Over() {
		return
	}
	f.over = true
	reset := packetResets(facts, packet)
	for side, p := range []pair{h.pairOf(key.a, key.b), h.pairOf(key.b, key.a)} {
		switch {
		case f.bytes[side] == 0:
		case reset:
			h.cell(p).Resets++
		default:
			h.cell(p).Completed++
		}
	}
}

func (h *Hub) pairOf(from, to netip.AddrPort) pair {
	return pair{int(from.Addr().As4()[2]), int(to.Addr().As4()[2])}
}

// forgetFlows removes finished and idle connections. It returns false if there were none.
func (h *Hub) forgetFlows(now time.Time) bool {
	before := len(h.flows)
	for key, f := range h.flows {
		if f.over || now.Sub(f.last) > flowIdle {
			delete(h.flows, key)
		}
	}
	return len(h.flows) < before
}

// flags returns the flags of a TCP segment.
func flags(f *capture.Facts, packet []byte) byte {
	if s := f.Segment(packet); len(s) > 13 {
		return s[13]
	}
	return 0
}

func packetOpens(f *capture.Facts, packet []byte) bool  { return flags(f, packet)&0x12 == 0x02 }
func packetResets(f *capture.Facts, packet []byte) bool { return flags(f, packet)&0x04 != 0 }
