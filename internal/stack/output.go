package stack

// The way out, hop by hop:
//
//	node Conn.Write  copies into the ring, rings the doorbell
//	node/loop        tells the connection
//	tcp Conn.output  what may be sent now, as a train of segments
//	tcp Host.Output  whose turn it is
//	Output           our packets, others', then TCP's                (here)
//	render           headers and checksums of each segment           (here)
//	link.WriteBatch  one system call

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Output fills b with what is to be sent at now and reports whether there may
// be more than fitted. Room holds, an interface, how many packets its link
// takes; it is counted down. What is in b stays valid until the stack is
// called for anything but Output.
func (s *Stack) Output(now clock.Time, room []int, b *buffer.Batch) bool {
	s.outputRIP(now)
	s.outputProbes(now)
	s.outputPorts(now)
	if !s.outputOwn(now, room, b) || !s.outputForwarded(now, room, b) {
		return true
	}
	if s.ports.waits && s.roomForPorts() {
		return true // the queue has emptied since
	}
	if !s.out.walking && !s.tcp.Ready() {
		return len(s.out.packets) > 0 && len(b.Trains()) > 0 // see usedUp
	}
	outlets := append(append(s.out.outlets[:0], room[:len(s.interfaces)]...), s.localRoom())
	s.out.outlets = outlets
	if s.out.walking {
		s.renderOn(now, outlets, b)
	}
	for !b.Full() {
		if !s.tcp.Output(now, outlets, &s.out.train) {
			return s.usedUp(outlets, b)
		}
		s.render(now, outlets, b)
	}
	return true
}

// Pending reports whether Output may have something, or somebody has to be asked.
func (s *Stack) Pending() bool {
	return s.tcp.Ready() || s.out.walking || len(s.out.packets)+len(s.out.forward) > 0 ||
		s.rip != nil || len(s.probers)+len(s.ports.list) > 0
}

// usedUp reports whether a connection, or a packet of our own, waits for a link whose
// room has gone into b. Then the owner asks again: perhaps the link has room for more by
// then, and if it has none, then a link that is full says when it is not. What waits for
// room has filed no timer, so nobody else would.
func (s *Stack) usedUp(outlets []int, b *buffer.Batch) bool {
	if len(b.Trains()) == 0 {
		return false
	}
	if len(s.out.packets) > 0 {
		return true
	}
	for i := range s.interfaces {
		if outlets[i] <= 0 && s.tcp.Waits(i) {
			return true
		}
	}
	return false
}

// localRoom is how many packets the queue to the node itself takes now.
func (s *Stack) localRoom() int { return (maxQueuedBytes - s.out.bytes) / ip.MaxPacketLen }

// outputOwn moves the node's own packets into b and keeps those whose link has
// no room. It reports false when b is full.
func (s *Stack) outputOwn(now clock.Time, room []int, b *buffer.Batch) bool {
	o := &s.out
	if len(o.packets) == 0 {
		return !b.Full()
	}
	kept := o.packets[:0]
	for i := range o.packets {
		p := &o.packets[i]
		if b.Full() || room[p.iface] <= 0 || !s.emit(now, room, b, p) {
			kept = append(kept, *p)
			continue
		}
		o.bytes -= len(p.data)
		if !p.shared {
			o.memory.give(p.data)
		}
	}
	clear(o.packets[len(kept):])
	o.packets = kept
	return !b.Full()
}

// emit puts one packet into b, in fragments if it has to be, and reports false if
// some of it is left.
func (s *Stack) emit(now clock.Time, room []int, b *buffer.Batch, p *packet) bool {
	out := &s.interfaces[p.iface]
	if !out.up && !p.last {
		s.dropOne(now, p.iface, Outbound, ip.DropInterfaceDown, p.data)
		return true
	}
	if len(p.data) > out.MTU {
		return s.emitFragments(now, room, b, p)
	}
	b.Begin(p.iface, p.hop, len(p.data))
	if p.sound {
		b.Vouch()
	}
	b.Add(p.data)
	room[p.iface]--
	out.tx.packets++
	out.tx.bytes += uint64(len(p.data))
	if s.tap != nil {
		s.in.one[0] = p.data
		s.tap(now, p.iface, Outbound, ip.DropNone, s.in.one[:])
	}
	return true
}

// render turns the train that TCP gave into packets in b.
func (s *Stack) render(now clock.Time, room []int, b *buffer.Batch) {
	t := &s.out.train
	hop, ok := s.hop(t.RemoteAddr)
	own, self := s.self(t.RemoteAddr)
	switch {
	case self:
		s.renderLocal(now, own)
		room[s.loopback()] = s.localRoom()
		return
	case !ok:
		// An address of ours always exists, so the drop has an interface to be counted at.
		s.interfaces[s.own[t.LocalAddr]].tx.drops[ip.DropNoRoute] += uint64(t.Segments())
		return
	case !s.interfaces[hop.Iface].up:
		s.interfaces[hop.Iface].tx.drops[ip.DropInterfaceDown] += uint64(t.Segments())
		return
	}
	r := s.out.renderer(t)
	r.iface, r.hop = hop.Iface, hop.Next
	s.renderOn(now, room, b)
}

// renderOn renders what is left of a train as far as b holds it. Most trains fit into
// a batch that is not full; one that does not is what was sent as a single segment
// before the path shrank, and the next call goes on with it.
func (s *Stack) renderOn(now clock.Time, room []int, b *buffer.Batch) {
	r := &s.out.walk
	out := &s.interfaces[r.iface]
	s.out.walking = true
	for !b.Full() {
		if !r.next() {
			s.out.walking = false
			return
		}
		b.Begin(r.iface, r.hop, r.size)
		b.Vouch() // put makes it
		b.Add(r.put(b.Scratch(r.headers)))
		for _, p := range r.text {
			b.Add(p)
		}
		room[r.iface]--
		out.tx.packets++
		out.tx.bytes += uint64(r.size)
		if s.tap != nil {
			trains := b.Trains()
			last := &trains[len(trains)-1]
			s.tap(now, r.iface, Outbound, ip.DropNone, last.Packet(last.Count-1))
		}
	}
}

// renderLocal queues a train that the node sends to itself.
func (s *Stack) renderLocal(now clock.Time, i int) {
	r := s.out.renderer(&s.out.train)
	for r.next() {
		p := make([]byte, r.headers, r.size)
		r.put(p)
		for _, t := range r.text {
			p = append(p, t...)
		}
		_ = s.queueLocal(now, i, p) // counted; TCP sends it again
	}
}

// renderer walks a train segment by segment.
type renderer struct {
	train   *tcp.Train
	header  tcp.Header
	pieces  [][]byte // payload not yet used
	sent    int      // payload bytes used
	headers int      // bytes of IP and TCP header of this segment
	size    int      // bytes of this segment's packet
	text    [][]byte // its payload
	cut     [4][]byte
	done    bool
	iface   int // where the train goes
	hop     ip.Addr
}

// renderer begins to walk a train. There is one, because it points into itself and
// would be allocated anew for each.
func (o *outbound) renderer(t *tcp.Train) *renderer {
	o.walk = renderer{train: t, pieces: t.Payload, header: t.Header}
	return &o.walk
}

// next steps to the next segment.
func (r *renderer) next() bool {
	if r.done {
		return false
	}
	t := r.train
	n := min(t.MSS, t.Len-r.sent)
	r.header.Seq = t.Seq + uint32(r.sent)
	r.sent += n
	r.done = r.sent >= t.Len
	r.header.Flags = t.Flags
	if !r.done {
		r.header.Flags &^= tcp.PSH | tcp.FIN
	}
	if r.sent > n {
		r.header.Flags &^= tcp.CWR
	}
	r.headers = ip.HeaderLen + r.header.Size()
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

// put writes the segment's IP and TCP headers, checksums included, to b.
func (r *renderer) put(b []byte) []byte {
	t := r.train
	// RFC 6864 §4.1: with DF set the identification means nothing.
	h := ip.Header{
		TOS: t.TOS | uint8(t.ECN), TotalLen: r.size, TTL: t.TTL, Protocol: ip.ProtoTCP,
		DF: true, Src: t.LocalAddr, Dst: t.RemoteAddr,
	}
	if h.TTL == 0 {
		h.TTL = defaultTTL
	}
	h.Put(b[:ip.HeaderLen])
	seg := b[ip.HeaderLen:]
	r.header.Put(seg, t.LocalPort, t.RemotePort)
	sum := checksum.PseudoHeader(h.Src, h.Dst, ip.ProtoTCP, r.size-ip.HeaderLen)
	sum = checksum.Sum(seg, sum)
	binary.BigEndian.PutUint16(seg[16:], ^checksum.Fold(checksum.SumPieces(r.text, sum)))
	return b
}
