package stack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/nat"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// translators are the NATs of a router's interfaces.
type translators struct {
	count int // number of interfaces with a NAT
	rng   *rand.Rand
	// match is the translation of the packet that is being forwarded, if there is one.
	match   nat.Match
	matched bool
}

// natDrops maps a NAT's verdicts to drop reasons.
var natDrops = [...]ip.DropReason{
	nat.Untranslated: ip.DropNATUnmapped, nat.Malformed: ip.DropNATProtocol,
	nat.Unsupported: ip.DropNATProtocol, nat.Filtered: ip.DropNATFiltered,
	nat.Full: ip.DropNATFull, nat.HostFull: ip.DropNATHostFull, nat.Held: ip.DropNATUnmapped,
}

// setNAT creates, changes or removes the NAT of an interface. The caller must have checked its
// configuration.
func (ifs *Interfaces) setNAT(f *iface) {
	if f.NAT == nil {
		f.nat = nil
		return
	}
	cfg := *f.NAT
	cfg.Addr, cfg.Rand = f.addr, ifs.translators.rng
	addr := f.addr
	cfg.Own = func(protocol uint8, port uint16, remote netip.AddrPort) bool {
		if protocol == ip.ProtoUDP {
			return ifs.udp.Uses(port)
		}
		return protocol == ip.ProtoTCP &&
			(ifs.tcp.Listens(netip.AddrPortFrom(addr, port)) || remote.IsValid() &&
				ifs.tcp.Knows(tcp.Tuple{
					LocalAddr: addr, LocalPort: port,
					RemoteAddr: remote.Addr(), RemotePort: remote.Port(),
				}))
	}
	var err error
	if f.nat == nil {
		f.nat, err = nat.New(cfg)
	} else {
		err = f.nat.Configure(cfg)
	}
	if err != nil {
		panic("BUG: stack: check accepted an invalid NAT: " + err.Error())
	}
}

// SetNAT adds or changes the NAT of interface i. Nil removes it.
func (s *Stack) SetNAT(i int, cfg *nat.Config) error {
	if cfg != nil && !s.ifs.router {
		return errors.New("a host does not forward packets: `nat on` in its file makes it a router")
	}
	f := s.ifs.list[i].Interface
	f.NAT = cfg
	if err := f.check(); err != nil {
		return err
	}
	s.ifs.list[i].NAT = cfg
	s.ifs.setNATs()
	s.routing.forget()
	return nil
}

// NAT returns the NAT of interface i, or nil if it has none.
func (ifs *Interfaces) NAT(i int) *nat.NAT { return ifs.list[i].nat }

func (ifs *Interfaces) setNATs() {
	ifs.translators.count = 0
	for i := range ifs.list {
		ifs.setNAT(&ifs.list[i])
		if ifs.list[i].nat != nil {
			ifs.translators.count++
		}
	}
}

// checkNAT returns an error if the interface's NAT is invalid.
func (c *Interface) checkNAT() error {
	if c.NAT == nil {
		return nil
	}
	if !c.Addr.IsValid() {
		return fmt.Errorf("stack: interface %s: a NAT needs an IPv4 address", c.Name)
	}
	if err := c.NAT.Check(); err != nil {
		return fmt.Errorf("stack: interface %s: %w", c.Name, err)
	}
	return nil
}

// natAt returns the interface whose NAT has the outside address, or -1.
func (ifs *Interfaces) natAt(a v4) int {
	return slices.IndexFunc(ifs.list, func(f iface) bool {
		return f.nat != nil && v4Of(f.addr) == a
	})
}

// translate handles a packet to the outside address of a NAT. It returns false if the packet is for
// the router itself, or a fragment, which the router reassembles first (RFC 4787 §11).
func (fw *forwarder) translate(now clock.Time, i int, f *flow, h *ip.Header, b []byte) bool {
	k := fw.ifs.natAt(v4Of(h.Dst))
	if k < 0 || h.IsFragment() {
		return false
	}
	n := fw.ifs.list[k].nat
	if i != k {
		return n.Hairpins(b) && fw.hairpin(now, i, n, h, b)
	}
	m, v := n.Inbound(now, b)
	switch v {
	case nat.Untranslated, nat.Malformed, nat.Unsupported:
		return false
	case nat.Translate:
		fw.forwardInward(now, i, f, h, b, m)
	default:
		fw.ifs.dropOne(now, i, Inbound, natDrops[v], b)
	}
	return true
}

// forwardInward forwards a packet to the inside host of a match. The translation follows later, so
// that an ICMP error quotes the packet as its sender has sent it.
func (fw *forwarder) forwardInward(
	now clock.Time, i int, f *flow, h *ip.Header, b []byte, m nat.Match,
) {
	t := &fw.ifs.translators
	fw.local.flushTrain(now) // keeps the order of delivered and forwarded packets
	h.Dst = m.Inside()
	if fw.ifs.isOwn(h.Dst) {
		fw.ifs.dropOne(now, i, Inbound, ip.DropNATUnmapped, b) // a port forward to the router
		return
	}
	t.match, t.matched = m, true
	fw.forward(now, i, f, h, b)
	t.matched = false
}

// hairpin forwards a packet between two inside hosts that use each other's outside addresses (RFC
// 4787 §6): it translates the source and the destination. It returns false if the packet's TTL
// expires here.
func (fw *forwarder) hairpin(now clock.Time, i int, n *nat.NAT, h *ip.Header, b []byte) bool {
	fw.local.flushTrain(now)
	if h.TTL <= 1 {
		return false
	}
	m, v := n.Outbound(now, b)
	if v == nat.Translate {
		b = slices.Clone(b) // the driver's memory must keep the packet as it arrived
		m.Apply(now, b)
		m, v = n.Inbound(now, b)
	}
	if v != nat.Translate {
		fw.ifs.dropOne(now, i, Inbound, natDrops[v], b)
		return true
	}
	fw.forwardInward(now, i, &flow{}, h, b, m)
	return true
}

// passes reports whether NATs let a packet pass from interface i to out. A packet from outside
// passes only if it has a translation. A fragment to the outside is reassembled first.
func (fw *forwarder) passes(now clock.Time, i, out int, h *ip.Header, b []byte) bool {
	if h.Is6() || i == out {
		return true
	}
	if fw.ifs.list[i].nat != nil && !fw.ifs.translators.matched {
		fw.ifs.dropOne(now, i, Inbound, ip.DropNATUnmapped, b)
		return false
	}
	if fw.ifs.list[out].nat != nil && h.IsFragment() {
		fw.local.reassemble(now, i, h, b)
		return false
	}
	return true
}

// handleReassembled handles a datagram that reassembly has completed. It returns false if it is for
// the router itself.
func (fw *forwarder) handleReassembled(now clock.Time, i int, h *ip.Header, b []byte) bool {
	if fw.ifs.translators.count == 0 || h.Is6() || fw.ifs.translators.matched {
		return false
	}
	b = slices.Clone(b) // reassembly reuses its memory
	if fw.ifs.isOurs(i, h.Dst) {
		return fw.translate(now, i, &flow{}, h, b)
	}
	fw.forward(now, i, &flow{}, h, b)
	return true
}

// rewrite translates a packet that passes from interface i to out and has a route. If it returns
// false, it has dropped the packet. It sends an ICMP error to the sender unless the packet is
// malformed or an ICMP message without a session (RFC 5508 §6).
func (fw *forwarder) rewrite(now clock.Time, i, out int, h *ip.Header, b []byte) bool {
	t := &fw.ifs.translators
	if t.matched {
		t.match.Apply(now, b)
	}
	n := fw.ifs.list[out].nat
	if n == nil || i == out || h.Is6() {
		return true
	}
	m, v := n.Outbound(now, b)
	if v != nat.Translate {
		fw.ifs.dropOne(now, out, Outbound, natDrops[v], b)
		if v == nat.Full || v == nat.HostFull || v == nat.Unsupported {
			fw.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodeAdminProhibited, b)
		}
		return false
	}
	m.Apply(now, b)
	fw.renumber(b)
	return true
}

// renumber replaces the identification of a packet without DF by one that is unique for the outside
// address. Several inside hosts may use the same identification (RFC 6864 §5.3.1).
func (fw *forwarder) renumber(b []byte) {
	const idAt, sumAt, flagsAt, dontFragment = 4, 10, 6, 0x40
	if b[flagsAt]&dontFragment != 0 {
		return
	}
	src, dst, _ := ip.Outline(b)
	id := uint16(fw.out.ids.Next(src, dst, b[9]))
	sum := binary.BigEndian.Uint16(b[sumAt:])
	sum = checksum.Update(sum, binary.BigEndian.Uint16(b[idAt:]), id)
	binary.BigEndian.PutUint16(b[sumAt:], sum)
	binary.BigEndian.PutUint16(b[idAt:], id)
}

// translated returns the NAT to cache in the decision about a packet from interface i to out, and
// whether the packet goes inward. cached is false if later packets need full processing.
func (fw *forwarder) translated(i, out int) (n *nat.NAT, inward, cached bool) {
	from, to, t := fw.ifs.list[i].nat, fw.ifs.list[out].nat, &fw.ifs.translators
	switch {
	case i == out || from == nil && to == nil:
		return nil, false, !t.matched
	case from != nil && to != nil:
		return nil, false, false
	case to != nil:
		return to, false, !t.matched
	}
	return from, true, true
}

// translateCached translates a packet of flow f. It returns false if full processing is needed.
func (fw *forwarder) translateCached(now clock.Time, f *flow, b []byte) bool {
	m, ok := f.nat.Known(b, f.inward)
	if !ok || f.inward && m.Inside() != f.inside {
		return false
	}
	m.Apply(now, b)
	if !f.inward {
		fw.renumber(b)
	}
	return true
}

// advanceNATs advances the NATs, and sends ICMP errors for SYNs from outside that were not
// answered.
func (s *Stack) advanceNATs(now clock.Time) {
	for i := range s.ifs.list {
		n := s.ifs.list[i].nat
		if n == nil {
			continue
		}
		n.Advance(now)
		for b, ok := n.Output(); ok; b, ok = n.Output() {
			s.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodePort, b)
		}
	}
}

// natDeadline returns when advanceNATs is due next.
func (ifs *Interfaces) natDeadline() (t clock.Time) {
	for i := range ifs.list {
		if n := ifs.list[i].nat; n != nil {
			t = clock.Earliest(t, n.Deadline())
		}
	}
	return t
}
