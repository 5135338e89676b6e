package udp

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// Flow is the two ends of an exchange of datagrams.
type Flow struct{ Local, Remote netip.AddrPort }

// Bounds of what waits for a decision, and of what was decided for.
const (
	// maxHeld is how many datagrams of one flow wait; more are lost.
	maxHeld = 4
	// maxHeldBytes is what all that wait may take.
	maxHeldBytes = 1 << 20
	// maxFlows is how many flows may be admitted at a time.
	maxFlows = 1 << 16
)

// catch keeps the datagrams that no socket is for until the owner has decided about
// their flows, and knows the sockets of those that it admitted: what tunnels and
// proxies are built on. What finds no room is lost, as datagrams may be.
type catch struct {
	limit    int // flows that wait; zero: what no socket is for is refused
	held     map[Flow]*caught
	bytes    int    // of all that are held
	fresh    []Flow // of held, what NextCaught has not told
	admitted map[Flow]*Socket
}

// caught is a flow that waits.
type caught struct {
	datagrams []datagram
	packet    []byte // the first of them, as far as an ICMP error quotes it
}

type datagram struct {
	arrival Arrival
	payload []byte
}

func (c *caught) size() int {
	n := len(c.packet)
	for i := range c.datagrams {
		n += len(c.datagrams[i].payload)
	}
	return n
}

// Catch has the datagrams of up to limit flows that no socket is for wait for Admit or
// Dismiss. Zero ends it, and forgets what NextCaught has not told yet.
func (h *Host) Catch(limit int) {
	h.catch.limit = limit
	if limit > 0 {
		return
	}
	for f, ok := h.NextCaught(); ok; f, ok = h.NextCaught() {
		h.Dismiss(f)
	}
}

// maxQuote is as much of a packet as an ICMP error ever quotes (RFC 1812 §4.3.2.3).
const maxQuote = 576

// Hold keeps a datagram that Input found no socket for: Delivered. It is Full where
// there is no room, and NoPort where none can be caught. Packet is all of it, with its
// IP header.
func (h *Host) Hold(a Arrival, b, packet []byte) Verdict {
	k := &h.catch
	header, payload, ok := ParseHeader(b)
	if k.limit == 0 || !ok || header.SrcPort == 0 {
		return NoPort
	}
	f := Flow{
		Local:  netip.AddrPortFrom(netip.AddrFrom4(a.Dst), header.DstPort),
		Remote: netip.AddrPortFrom(netip.AddrFrom4(a.Src), header.SrcPort),
	}
	c := k.held[f]
	switch {
	case k.bytes+len(payload)+maxQuote > maxHeldBytes,
		c == nil && len(k.held) >= k.limit,
		c != nil && len(c.datagrams) >= maxHeld:
		return Full
	case c == nil:
		c = &caught{packet: append([]byte(nil), packet[:min(len(packet), maxQuote)]...)}
		k.bytes += len(c.packet)
		if k.held == nil {
			k.held = map[Flow]*caught{}
		}
		k.held[f] = c
		k.fresh = append(k.fresh, f)
	}
	c.datagrams = append(c.datagrams, datagram{a, append([]byte(nil), payload...)})
	k.bytes += len(payload)
	return Delivered
}

// NextCaught returns a flow that waits, once.
func (h *Host) NextCaught() (Flow, bool) {
	for len(h.catch.fresh) > 0 {
		f := h.catch.fresh[0]
		h.catch.fresh = h.catch.fresh[1:]
		if _, ok := h.catch.held[f]; ok {
			return f, true
		}
	}
	return Flow{}, false
}

// Admit opens a connected socket for a flow that waits, and gives it what has come. It
// is false when the flow waits no more, or too many were admitted.
func (h *Host) Admit(f Flow) (*Socket, bool) {
	k := &h.catch
	c := h.dismiss(f)
	if c == nil || len(k.admitted) >= maxFlows || k.admitted[f] != nil {
		return nil, false
	}
	s := &Socket{
		host: h, local: f.Local, remote: f.Remote, admitted: true,
		rx: buffer.NewRing(h.cfg.RecvBuffer),
	}
	if k.admitted == nil {
		k.admitted = map[Flow]*Socket{}
	}
	k.admitted[f] = s
	for i := range c.datagrams {
		d := &c.datagrams[i]
		s.deliver(f.Remote, &d.arrival, d.payload)
	}
	return s, true
}

// Dismiss forgets a flow that waits, and returns the beginning of its first packet for
// an ICMP error to quote; nil: it waits no more.
func (h *Host) Dismiss(f Flow) []byte {
	if c := h.dismiss(f); c != nil {
		return c.packet
	}
	return nil
}

func (h *Host) dismiss(f Flow) *caught {
	c := h.catch.held[f]
	if c != nil {
		delete(h.catch.held, f)
		h.catch.bytes -= c.size()
	}
	return c
}

// Admitted reports whether a flow has a socket that Admit opened.
func (h *Host) Admitted(f Flow) bool { return h.catch.admitted[f] != nil }

// ofFlow returns the socket that was admitted for a flow, nil if none was.
func (h *Host) ofFlow(local, remote netip.AddrPort) *Socket {
	if len(h.catch.admitted) == 0 {
		return nil
	}
	return h.catch.admitted[Flow{local, remote}]
}
