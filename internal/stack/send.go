package stack

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// These are errors for packets that the node sends.
var (
	ErrNoRoute       = errors.New("no route to host")
	ErrNoNeighbor    = errors.New("no such neighbor")
	ErrInterfaceDown = errors.New("interface is down")
	ErrTooBig        = errors.New("message too long")
	ErrQueueFull     = errors.New("output queue full")
)

// packet is one queued IP packet.
type packet struct {
	iface   int
	hop     netip.Addr
	data    []byte
	mtu     int  // MTU of the path, if it is less than the link's
	at      int  // number of payload bytes that were sent in fragments
	last    bool // the packet is sent even if the interface is down
	shared  bool // other packets use the data, too
	checked bool // the transport checksum is known to be correct
}

// maxQueuedBytes limits what the stack itself queues, for example UDP datagrams, echo replies, ICMP
// errors and RIP messages. TCP's data stays in the send buffers.
const maxQueuedBytes = 1 << 20

// sender queues the node's own packets until links accept them, and renders TCP's trains.
type sender struct {
	ifs     *Interfaces
	routing *Routing
	tcp     *tcp.Host
	ids     *ip.Identifications
	labels  *ip.FlowLabels
	paths   pathMTUs

	packets    []packet // rendered packets, in order
	toSelf     []packet // packets to the node itself
	localAt    clock.Time
	train      tcp.Train
	walk       renderer
	fragmenter ip.Fragmenter
	walking    bool   // the last batch was full before the end of the train
	outlets    []int  // room of each outlet; the loopback is the last one
	bytes      int    // number of bytes in packets and toSelf
	datagram   []byte // UDP datagram that is being sent
	checked    bool   // the packet that is being queued is a datagram with a correct checksum
	memory     memory
}

// send queues one of the node's own packets. A zero source stands for the address of the outgoing
// interface.
func (tx *sender) send(now clock.Time, h ip.Header, payload []byte) error {
	n, most := h.Size()+len(payload), ip.MaxPacketLen
	if h.Is6() {
		most += ip.HeaderLen6 // the payload length does not include the header (RFC 8200 §3)
	}
	if n > most {
		return fmt.Errorf("a packet of %d bytes: %w", n, ErrTooBig)
	}
	if err := tx.routing.checkLoopback(h.Src, h.Dst); err != nil {
		return err
	}
	if i, self := tx.ifs.self(h.Dst); self {
		if isUnset(h.Src) {
			h.Src = h.Dst
		}
		h.TotalLen, h.TTL = n, cmp.Or(h.TTL, defaultTTL)
		return tx.queueLocal(now, i, append(h.Append(nil), payload...))
	}
	i, hop, err := tx.routing.nextHop(h.Dst)
	if errors.Is(err, ErrNoNeighbor) {
		tx.ifs.list[i].tx.drops[ip.DropUnknownNeighbor]++
	}
	if err != nil {
		return err
	}
	return tx.sendVia(now, i, hop, h, payload)
}

// sendVia queues a packet for a given interface and next hop.
func (tx *sender) sendVia(
	now clock.Time, i int, hop netip.Addr, h ip.Header, payload []byte,
) error {
	out := &tx.ifs.list[i]
	if isUnset(h.Src) {
		h.Src = tx.ifs.Source(i, h.Dst)
	}
	h.TTL = cmp.Or(h.TTL, out.ttl(h.Is6()))
	mtu := out.MTU
	if h.Is6() {
		mtu = min(mtu, tx.paths.get(now, h.Dst, mtu))
		if h.FlowLabel == 0 {
			h.FlowLabel = tx.label(h.Src, h.Dst, 0, 0, h.Protocol)
		}
	}
	// RFC 6864 §4.1: atomic datagrams need no identification. RFC 8200 §4.5: IPv6 packets that are
	// not fragmented need none either.
	if !h.DF && (!h.Is6() || mayFragment(&h) && h.Size()+len(payload) > mtu) {
		h.ID = tx.ids.Next(h.Src, h.Dst, h.Protocol)
	}
	h.TotalLen = h.Size() + len(payload)
	b := append(h.Append(tx.memory.take(h.TotalLen)), payload...)
	switch {
	case !out.up:
		tx.ifs.dropOne(now, i, Outbound, ip.DropInterfaceDown, b)
		return fmt.Errorf("%s: %w", out.Name, ErrInterfaceDown)
	case len(b) > mtu && !mayFragment(&h):
		tx.ifs.dropOne(now, i, Outbound, ip.DropTooBig, b)
		return fmt.Errorf("%d bytes over %s with MTU %d: %w", len(b), out.Name, mtu, ErrTooBig)
	case tx.bytes+len(b) > maxQueuedBytes:
		tx.ifs.dropOne(now, i, Outbound, ip.DropQueueFull, b)
		return fmt.Errorf("%s: %w", out.Name, ErrQueueFull)
	}
	tx.enqueue(now, packet{iface: i, hop: hop.WithZone(""), data: b, mtu: mtu})
	return nil
}

// ttl returns the initial TTL of packets (RFC 4861 §6.3.4).
func (f *iface) ttl(six bool) uint8 {
	if six && f.hopLimit > 0 {
		return f.hopLimit
	}
	return defaultTTL
}

// queueLocal queues a packet from the node to itself for the next Advance.
func (tx *sender) queueLocal(now clock.Time, i int, b []byte) error {
	if tx.bytes+len(b) > maxQueuedBytes {
		tx.ifs.dropOne(now, i, Outbound, ip.DropQueueFull, b)
		return ErrQueueFull
	}
	tx.bytes += len(b)
	tx.toSelf = append(tx.toSelf, packet{iface: i, data: b})
	tx.localAt = now
	return nil
}

// enqueue queues a packet for its next hop. A broadcast or multicast packet is queued once for each
// neighbor on the link if the neighbors are known. Otherwise one packet is sent, and the link
// delivers it to all.
func (tx *sender) enqueue(now clock.Time, p packet) {
	nodes := tx.ifs.list[p.iface].Neighbors
	if nodes == nil || !tx.ifs.isBroadcastOrGroup(p.iface, p.hop) {
		tx.enqueueOne(p)
		return
	}
	six := p.hop.Is6()
	for _, node := range nodes {
		if node.Is6() != six || six && !node.IsLinkLocalUnicast() {
			continue // an IPv6 neighbor gets one copy, at its link-local address
		}
		if tx.bytes+len(p.data) > maxQueuedBytes {
			tx.ifs.dropOne(now, p.iface, Outbound, ip.DropQueueFull, p.data)
			continue
		}
		p.hop, p.shared = node, true
		tx.enqueueOne(p)
	}
}

func (tx *sender) enqueueOne(p packet) {
	tx.bytes += len(p.data)
	p.checked = tx.checked
	tx.packets = append(tx.packets, p)
}

// localRoom returns how many more packets of maximum length fit into the queue to the node itself.
func (tx *sender) localRoom() int { return (maxQueuedBytes - tx.bytes) / ip.MaxPacketLen }

// mayFragment reports whether one of the node's packets may be fragmented (RFC 791 §3.2). TCP uses
// the path MTU instead, and the courses' nodes do not reassemble packets of the courses' protocols.
func mayFragment(h *ip.Header) bool {
	switch h.Protocol {
	case ip.ProtoTCP, ip.ProtoTest, ip.ProtoRIP:
		return false
	}
	return !h.DF
}
