package peer

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// Host is a peer with one connection.
type Host struct {
	wire   *Wire
	quirks Quirks
	addr   netip.Addr // this peer's address
	Stats  Stats

	remote         netip.Addr
	port, nodePort uint16
	state          state

	// Sending: when the timer fires, the peer retransmits all data from una on.
	out      []byte
	iss, una uint32
	next     uint32 // the first unsent byte
	peerWnd  uint32
	finSent  bool
	first    bool // this peer closes first
	timer    time.Time
	leaveAt  time.Time
	stormed  bool

	// Receiving. Data is accepted in order only.
	program   program
	rcv       uint32
	finSeen   bool
	stalledAt time.Time
	dataSeen  int // segments with data
	loss      *rand.Rand
}

// program reads the received data.
type program struct {
	in     bytes.Buffer // data that the program has read
	unread bytes.Buffer // received data that the program has not read
	readAt time.Time    // when the program reads unread
}

// Stats counts what the peer received, and the segments that it retransmitted.
type Stats struct {
	SYNs, OptionSYNs int // number of SYNs, and of those with options
	Options          int // other segments with options
	Segments         int // number of all received segments
	Closing          int // segments received after both FINs
	Repeated         int // number of retransmitted segments; each may cause an acknowledgment
	Resets           int // number of resets before the connection's end
	LateResets       int // number of resets after the connection's end
	DataFINs         int // segments with data and a FIN
	Discarded        int // number of bytes that were unread when the FIN arrived
}

type state uint8

const (
	listening state = iota
	synSent
	synReceived
	established
	done
)

// New returns a peer with an address, at one end of a wire.
func New(wire *Wire, addr netip.Addr, quirks Quirks) *Host {
	quirks.MSS = cmp.Or(quirks.MSS, defaultMSS)
	return &Host{
		wire: wire, addr: addr, quirks: quirks, iss: quirks.ISS,
		loss: rand.New(rand.NewPCG(uint64(quirks.ISS), 1)),
	}
}

// Accept accepts one connection to the port, sends out, closes after the other end has closed, and
// returns the received data.
func (h *Host) Accept(port uint16, out []byte, within time.Duration) ([]byte, error) {
	h.port, h.out = port, out
	err := h.run(within)
	return h.program.in.Bytes(), err
}

// Connect opens a connection, sends out, closes, and returns the data received until the other end
// closed.
func (h *Host) Connect(to netip.AddrPort, out []byte, within time.Duration) ([]byte, error) {
	h.port, h.remote, h.nodePort, h.out = 40000, to.Addr(), to.Port(), out
	h.state, h.una, h.next, h.first = synSent, h.iss, h.iss+1, true
	h.arm()
	h.sendSYN()
	err := h.run(within)
	return h.program.in.Bytes(), err
}

// run serves the connection to its end, and for some time after it.
func (h *Host) run(within time.Duration) error {
	limit := time.Now().Add(within)
	for {
		until := limit
		switch {
		case h.state == done && h.leaveAt.IsZero():
			h.leaveAt = time.Now().Add(linger)
			if h.quirks.Loss > 0 {
				h.leaveAt = time.Now().Add(lossyLinger)
			}
			until = h.leaveAt
		case h.state == done:
			until = h.leaveAt
		case !h.timer.IsZero() && h.timer.Before(limit):
			until = h.timer
		}
		if h.program.unread.Len() > 0 && h.program.readAt.Before(until) {
			until = h.program.readAt
		}
		p, ok := h.wire.Receive(until)
		now := time.Now()
		if h.program.unread.Len() > 0 && !now.Before(h.program.readAt) {
			_, _ = h.program.unread.WriteTo(&h.program.in)
		}
		switch {
		case ok:
			h.packet(p)
		case h.state == done:
			return nil
		case !now.Before(limit):
			return fmt.Errorf("the peer was not done within %v: %v", within, h)
		case !h.timer.IsZero() && !now.Before(h.timer):
			h.retransmitAll()
		}
	}
}

// String describes the state of the connection.
func (h *Host) String() string {
	return fmt.Sprintf("state %d, %d of %d bytes acknowledged, %d received, "+
		"FIN sent %v, seen %v, %+v",
		h.state, h.una-h.iss, len(h.out), h.program.in.Len(), h.finSent, h.finSeen, h.Stats)
}

func (h *Host) packet(p Packet) {
	if p.Dst != h.addr {
		return
	}
	s, ok := ParseSegment(p)
	if !ok {
		return
	}
	if h.loses() {
		return
	}
	h.Stats.Segments++
	switch {
	case s.Flags&SYN != 0 && len(s.Options) > 0:
		h.Stats.OptionSYNs++
		h.Stats.SYNs++
	case s.Flags&SYN != 0:
		h.Stats.SYNs++
	case len(s.Options) > 0:
		h.Stats.Options++
	}
	if h.quirks.DropOptions && len(s.Options) > 0 || s.DstPort != h.port {
		return
	}
	h.segment(p.Src, s)
}

// loses draws whether a segment is lost.
func (h *Host) loses() bool { return h.quirks.Loss > 0 && h.loss.Float64() < h.quirks.Loss }

func (h *Host) segment(from netip.Addr, s Segment) {
	switch {
	case s.Flags&RST != 0 && h.state == done:
		h.Stats.LateResets++
	case s.Flags&RST != 0:
		h.Stats.Resets++
		h.state, h.timer = done, time.Time{}
	case h.state == listening && s.Flags&SYN != 0:
		h.remote, h.nodePort = from, s.SrcPort
		h.rcv, h.una, h.next = s.Seq+1, h.iss, h.iss+1
		h.state = synReceived
		h.arm()
		h.sendSYN()
	case h.state == synReceived && s.Flags&SYN != 0:
		h.sendSYN()
	case h.state == synSent && s.Flags&(SYN|ACK) == SYN|ACK && s.Ack == h.next:
		h.rcv, h.una, h.peerWnd = s.Seq+1, s.Ack, uint32(s.Window)
		h.state = established
		h.acknowledge()
		h.push()
	case h.state >= synReceived && s.SrcPort == h.nodePort:
		h.established(s)
	}
}

func (h *Host) established(s Segment) {
	if h.state == done {
		h.Stats.Closing++
	}
	if s.Flags&ACK != 0 && int32(s.Ack-h.una) >= 0 && int32(s.Ack-h.next) <= 0 {
		if s.Ack != h.una {
			h.arm()
		}
		h.una, h.peerWnd = s.Ack, uint32(s.Window)
		if h.state == synReceived {
			h.state = established
		}
	}
	if len(s.Payload) > 0 || s.Flags&(FIN|SYN) != 0 {
		h.receive(s)
	}
	h.push()
	if h.finSent && h.una == h.next && h.finSeen && h.state == established {
		h.state, h.timer = done, time.Time{}
	}
	if h.stormed && h.quirks.AckStorm > 0 {
		h.acknowledge()
	}
}

// receive processes data that arrives in order, and acknowledges every segment.
func (h *Host) receive(s Segment) {
	if len(s.Payload) > 0 && h.quirks.LoseEach > 0 {
		if h.dataSeen++; h.dataSeen%h.quirks.LoseEach == 0 {
			return
		}
	}
	if len(s.Payload) > 0 && s.Flags&FIN != 0 {
		h.Stats.DataFINs++
		switch h.quirks.DataFIN {
		case TakesBoth:
		case IgnoresBoth:
			return
		case IgnoresFIN:
			s.Flags &^= FIN
		case DropsData:
			if s.Seq == h.rcv {
				h.rcv += uint32(len(s.Payload))
			}
		}
	}
	offset := h.rcv - s.Seq // number of its bytes that were received before
	if int32(offset) >= 0 && int(offset) <= len(s.Payload) && h.window() > 0 {
		h.deliver(s.Payload[offset:])
		if s.Flags&FIN != 0 && !h.finSeen {
			h.finSeen = true
			h.rcv++
			h.Stats.Discarded += h.program.unread.Len()
			h.program.unread.Reset()
		}
	}
	h.acknowledge()
}

// deliver passes data to the program, or keeps it until the program reads.
func (h *Host) deliver(data []byte) {
	h.rcv += uint32(len(data))
	if h.quirks.ReadAfter == 0 {
		h.program.in.Write(data)
		return
	}
	if h.program.unread.Len() == 0 {
		h.program.readAt = time.Now().Add(h.quirks.ReadAfter)
	}
	h.program.unread.Write(data)
}

// window returns the receive window to advertise.
func (h *Host) window() uint16 {
	m := h.quirks
	if m.Stall == 0 || h.program.in.Len() < m.Stall {
		return uint16(max(0, window-h.program.unread.Len()))
	}
	if h.stalledAt.IsZero() {
		h.stalledAt = time.Now()
	}
	if time.Since(h.stalledAt) < m.StallFor {
		return 0
	}
	return window
}

// push sends as much data as the other end's window permits, and the FIN after the last byte.
func (h *Host) push() {
	if h.state != established {
		return
	}
	for !h.finSent {
		sent := int(h.next - h.iss - 1)
		room := int(int32(h.una + h.peerWnd - h.next))
		room = min(room, len(h.out)-sent, h.quirks.MSS)
		switch {
		case room > 0:
			h.sendData(h.next, room)
			h.next += uint32(room)
		case sent == len(h.out) && (h.finSeen || h.first):
			h.finSent = true
			h.next++
			h.sendFIN()
		default:
			return
		}
	}
}

// retransmitAll retransmits all unacknowledged data.
func (h *Host) retransmitAll() {
	h.arm()
	switch h.state {
	case listening, done:
	case synSent, synReceived:
		h.sendSYN()
	case established:
		last := h.next
		if h.finSent {
			last--
		}
		for seq := h.una; int32(last-seq) > 0; {
			n := min(int(last-seq), h.quirks.MSS)
			h.sendData(seq, n)
			h.Stats.Repeated++
			seq += uint32(n)
		}
		if h.finSent {
			h.sendFIN()
			h.Stats.Repeated++
		} else if h.una == h.next && int(h.next-h.iss-1) < len(h.out) {
			h.sendData(h.next, 1) // a probe of a zero window
			h.next++
		}
	}
}

func (h *Host) arm() { h.timer = time.Now().Add(rto) }
