package udp

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// Flow is the two ends of an exchange of datagrams.
type Flow struct{ Local, Remote netip.AddrPort }

// These are limits of held datagrams and admitted flows.
const (
	// maxHeld is the maximum number of held datagrams of one flow. Further datagrams are lost.
	maxHeld = 4
	// maxHeldBytes is the maximum number of bytes in all held datagrams.
	maxHeldBytes = 1 << 20
	// maxFlows is the maximum number of admitted flows.
	maxFlows = 1 << 16
)

// catch holds datagrams without a socket until the owner decides about their flows, and contains
// the sockets of admitted flows. Tunnels and proxies use it. Datagrams beyond its limits are lost.
type catch struct {
	limit    int // maximum number of waiting flows; 0: datagrams without a socket are refused
	held     map[Flow]*caught
	bytes    int    // number of bytes in all held datagrams
	fresh    []Flow // held flows that NextCaught has not returned
	admitted map[Flow]*Socket
}

// caught is a held flow.
type caught struct {
	datagrams []datagram
	packet    []byte // start of the flow's first packet, for an ICMP error
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

// Catch makes the host hold the datagrams of up to limit flows without a socket for Admit or
// Dismiss. A limit of zero disables this, and forgets the flows that NextCaught has not returned.
func (h *Host) Catch(limit int) {
	h.catch.limit = limit
	if limit > 0 {
		return
	}
	for f, ok := h.NextCaught(); ok; f, ok = h.NextCaught() {
		h.Dismiss(f)
	}
}

// maxQuote is the longest quotation in an ICMP error (RFC 1812 §4.3.2.3).
const maxQuote = 576

// Hold holds a datagram for which Input found no socket, and returns Delivered. It returns Full at
// a limit, and NoPort if Catch is off or no reply is possible. packet includes the IP header.
func (h *Host) Hold(a Arrival, b, packet []byte) Verdict {
	k := &h.catch
	header, payload, ok := ParseHeader(b)
	if k.limit == 0 || !ok || header.SrcPort == 0 {
		return NoPort
	}
	f := Flow{
		Local:  netip.AddrPortFrom(a.Dst, header.DstPort),
		Remote: netip.AddrPortFrom(a.Src, header.SrcPort),
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

// NextCaught returns each held flow once.
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

// Admit opens a connected socket for a held flow, and passes it the held datagrams. It returns
// false if the flow is no longer held, or at the limit of admitted flows.
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

// Dismiss drops a held flow, and returns the start of its first packet for an ICMP error. It
// returns nil if the flow is no longer held.
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

// ofFlow returns the admitted socket of a flow, or nil if it has none.
func (h *Host) ofFlow(local, remote netip.AddrPort) *Socket {
	if len(h.catch.admitted) == 0 {
		return nil
	}
	return h.catch.admitted[Flow{local, remote}]
}
