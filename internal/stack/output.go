package stack

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Output fills b with the packets to send at now and reports whether there may be more. room is the
// number of packets that the link of each interface accepts, and Output decreases it. The contents
// of b stay valid until the stack is called for anything but Output.
func (s *Stack) Output(now clock.Time, room []int, b *buffer.Batch) bool {
	more := s.output(now, room, b)
	if len(s.discovery.list) > 0 {
		s.discovery.sent(now, b)
	}
	return more
}

func (s *Stack) output(now clock.Time, room []int, b *buffer.Batch) bool {
	if s.engines() {
		for _, rp := range s.rips {
			rp.output(now)
		}
		s.probers.output(now)
		s.ports.output(now)
	}
	if len(s.out.packets) > 0 && !s.out.outputOwn(now, room, b) ||
		len(s.fwd.queue) > 0 && !s.fwd.output(now, room, b) {
		return true
	}
	if s.ports.waits && s.ports.hasRoom() {
		return true // the queue was emptied meanwhile
	}
	if !s.out.walking && !s.tcp.Ready() {
		return len(s.out.packets) > 0 && len(b.Trains()) > 0 // see waitsForRoom
	}
	outlets := append(append(s.out.outlets[:0], room[:len(s.ifs.list)]...), s.out.localRoom())
	s.out.outlets = outlets
	if s.out.walking {
		s.out.renderOn(now, outlets, b)
	}
	for !b.Full() {
		if !s.tcp.Output(now, outlets, &s.out.train) {
			return s.out.waitsForRoom(outlets, b)
		}
		s.out.render(now, outlets, b)
	}
	return true
}

// Pending reports whether Output may have packets to send.
func (s *Stack) Pending() bool { return len(s.fwd.queue) > 0 || s.unsent() || s.engines() }

// unsent reports whether Output may have some of the node's own packets to send.
func (s *Stack) unsent() bool { return s.tcp.Ready() || s.out.walking || len(s.out.packets) > 0 }

// engines reports whether engines other than TCP may have packets to send.
func (s *Stack) engines() bool {
	return len(s.rips)+len(s.probers.list)+len(s.ports.list) > 0
}

// waitsForRoom reports whether a connection, or one of the node's own packets, waits for a link
// whose room the packets in b use. No timer ends this wait, so the owner must call Output again:
// the link may have room then. A link that is still full signals when it has room.
func (tx *sender) waitsForRoom(outlets []int, b *buffer.Batch) bool {
	if len(b.Trains()) == 0 {
		return false
	}
	if len(tx.packets) > 0 {
		return true
	}
	for i := range tx.ifs.list {
		if outlets[i] <= 0 && tx.tcp.Waits(i) {
			return true
		}
	}
	return false
}

// outputOwn moves the node's own packets into b, while links have room. It returns false if b is
// full.
func (tx *sender) outputOwn(now clock.Time, room []int, b *buffer.Batch) bool {
	kept := tx.packets[:0]
	for i := range tx.packets {
		p := &tx.packets[i]
		if b.Full() || room[p.iface] <= 0 || !tx.emit(now, room, b, p) {
			kept = append(kept, *p)
			continue
		}
		tx.bytes -= len(p.data)
		if !p.shared {
			tx.memory.give(p.data)
		}
	}
	clear(tx.packets[len(kept):])
	tx.packets = kept
	return !b.Full()
}

// emit puts one packet into b, in fragments if necessary. It returns false if b did not accept all
// of it.
func (tx *sender) emit(now clock.Time, room []int, b *buffer.Batch, p *packet) bool {
	out := &tx.ifs.list[p.iface]
	if !out.up && !p.last {
		tx.ifs.dropOne(now, p.iface, Outbound, ip.DropInterfaceDown, p.data)
		return true
	}
	if len(p.data) > out.MTU || p.mtu > 0 && len(p.data) > p.mtu {
		return tx.emitFragments(now, room, b, p)
	}
	b.Begin(p.iface, p.hop, len(p.data), p.checked)
	b.Add(p.data)
	room[p.iface]--
	out.tx.packets++
	out.tx.bytes += uint64(len(p.data))
	if tx.ifs.tap != nil {
		tx.ifs.show(now, p.iface, Outbound, p.data)
	}
	return true
}

// render converts the train from TCP to packets in b.
func (tx *sender) render(now clock.Time, room []int, b *buffer.Batch) {
	t := &tx.train
	hop, ok := tx.routing.hop(t.RemoteAddr)
	own, self := tx.ifs.self(t.RemoteAddr)
	switch {
	case self:
		tx.renderLocal(now, own)
		room[tx.ifs.loopback()] = tx.localRoom()
		return
	case !ok:
		// The address is one of the node's, so there is an interface that counts the drop.
		from, _ := tx.ifs.Owns(t.LocalAddr)
		tx.ifs.list[from].tx.drops[ip.DropNoRoute] += uint64(t.Segments())
		return
	case !tx.ifs.list[hop.Iface].up:
		tx.ifs.list[hop.Iface].tx.drops[ip.DropInterfaceDown] += uint64(t.Segments())
		return
	}
	r := tx.renderer(t)
	r.iface, r.hop = hop.Iface, hop.Next
	r.ttl = tx.ifs.list[hop.Iface].ttl(t.RemoteAddr.Is6())
	tx.renderOn(now, room, b)
}

// renderOn continues to render a train while b has room. Most trains fit into an empty batch. One
// that does not fit was sent as a single segment before the path MTU shrank; the next call
// continues it.
func (tx *sender) renderOn(now clock.Time, room []int, b *buffer.Batch) {
	r := &tx.walk
	out := &tx.ifs.list[r.iface]
	tx.walking = true
	for !b.Full() {
		if !r.next() {
			tx.walking = false
			return
		}
		b.Begin(r.iface, r.hop, r.size, true) // put will write the checksum
		b.Add(r.put(b.Scratch(r.headers)))
		for _, p := range r.text {
			b.Add(p)
		}
		room[r.iface]--
		out.tx.packets++
		out.tx.bytes += uint64(r.size)
		if tx.ifs.tap != nil {
			tx.ifs.showLast(now, r.iface, b)
		}
	}
}

// renderLocal queues a train that the node sends to itself.
func (tx *sender) renderLocal(now clock.Time, i int) {
	r := tx.renderer(&tx.train)
	for r.next() {
		p := make([]byte, r.headers, r.size)
		r.put(p)
		for _, t := range r.text {
			p = append(p, t...)
		}
		_ = tx.queueLocal(now, i, p) // ignores the error: the drop is counted, and TCP retransmits
	}
}

// renderer writes the segments of a train. It adapts the train's header to each segment.
type renderer struct {
	train   *tcp.Train
	flags   tcp.Flags // flags of the train
	pieces  [][]byte  // pieces of the payload that are not sent yet
	sent    int       // number of payload bytes sent
	ip      int       // length of the IP header
	label   uint32    // flow label of IPv6
	ttl     uint8     // TTL if the train has none
	headers int       // length of the IP and TCP headers of this segment
	size    int       // length of this segment's packet
	text    [][]byte  // payload of this segment
	cut     [4][]byte
	done    bool
	iface   int // outgoing interface
	hop     netip.Addr
}

// renderer starts to write a train. The stack has one renderer, so this does not allocate.
func (tx *sender) renderer(t *tcp.Train) *renderer {
	r := &tx.walk
	r.train, r.flags, r.pieces, r.sent, r.done = t, t.Flags, t.Payload, 0, false
	r.ip, r.ttl = headerLen(t.LocalAddr), defaultTTL
	if t.LocalAddr.Is6() {
		r.label = tx.label(t.LocalAddr, t.RemoteAddr, t.LocalPort, t.RemotePort, ip.ProtoTCP)
	}
	return r
}

// next advances to the next segment.
func (r *renderer) next() bool {
	if r.done {
		return false
	}
	t := r.train
	n := min(t.MSS, t.Len-r.sent)
	t.Flags = r.flags
	if r.sent > 0 {
		t.Seq += uint32(t.MSS)
		t.Flags &^= tcp.CWR
	}
	r.sent += n
	if r.done = r.sent >= t.Len; !r.done {
		t.Flags &^= tcp.PSH | tcp.FIN
	}
	r.headers = r.ip + t.Header.Size()
	r.size = r.headers + n
	r.text = r.cut[:0]
	for n > 0 {
		p := r.pieces[0]
		if len(p) > n {
			r.pieces[0] = p[n:]
			p = p[:n]
		} else {
			r.pieces = r.pieces[1:]
		}
		r.text = append(r.text, p)
		n -= len(p)
	}
	return true
}

// put writes the segment's IP and TCP headers with their checksums to b.
func (r *renderer) put(b []byte) []byte {
	t := r.train
	// RFC 6864 §4.1: the identification has no meaning if DF is set.
	h := ip.Header{
		TOS: t.TOS | uint8(t.ECN), TotalLen: r.size, TTL: t.TTL, Protocol: ip.ProtoTCP,
		DF: true, Src: t.LocalAddr, Dst: t.RemoteAddr, FlowLabel: r.label,
	}
	if h.TTL == 0 {
		h.TTL = r.ttl
	}
	h.Put(b[:r.ip])
	seg := b[r.ip:]
	t.Header.Put(seg, t.LocalPort, t.RemotePort)
	sum := checksum.PseudoHeader(h.Src, h.Dst, ip.ProtoTCP, r.size-r.ip)
	sum = checksum.Sum(seg, sum)
	binary.BigEndian.PutUint16(seg[16:], ^checksum.Fold(checksum.SumPieces(r.text, sum)))
	return b
}
