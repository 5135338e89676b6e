package stack

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// These are errors of UDP sockets.
var (
	// ErrNotOurs means that no interface has the local address.
	ErrNotOurs = errors.New("not an address of this node")
	// ErrNotConnected means that the datagram has no destination.
	ErrNotConnected = errors.New("the socket is not connected")
	// ErrBroadcast means that the destination is a broadcast address, and the socket does not
	// permit that.
	ErrBroadcast = errors.New("the socket does not permit broadcasts")
)

// Datagrams opens UDP sockets on the node's addresses, and sends their datagrams.
type Datagrams struct {
	ifs     *Interfaces
	routing *Routing
	out     *sender
	icmp    *icmpHost
	rips    []*RIP
	udp     *udp.Host
}

// datagram delivers a UDP packet to its socket.
func (l *local) datagram(now clock.Time, i int, h *ip.Header, b, payload []byte) ip.DropReason {
	if reason, mine := l.inputRIP(now, i, h, payload); mine {
		return reason
	}
	l.ports.now = now
	a := udp.Arrival{
		Src: h.Src, Dst: h.Dst, Iface: i, TTL: h.TTL, Foreign: l.foreign(i, h.Dst),
		Checked: l.in.checked,
	}
	verdict := l.udp.Input(a, payload)
	if verdict == udp.NoPort && l.catching.udp && !l.ifs.isBroadcastOrGroup(i, h.Dst) {
		verdict = l.udp.Hold(a, payload, b)
	}
	switch verdict {
	case udp.Delivered:
		return ip.DropNone
	case udp.BadHeader:
		return ip.DropUDPHeader
	case udp.BadChecksum:
		return ip.DropUDPChecksum
	case udp.NoChecksum:
		return ip.DropUDPNoChecksum
	case udp.BadSource:
		return ip.DropMartian
	case udp.Full:
		return ip.DropUDPFull
	case udp.NoPort:
	}
	// RFC 1122 §4.1.3.1: a closed port is reported to the sender. reportError does not report
	// broadcasts (RFC 1122 §3.2.2).
	l.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodePort, b)
	return ip.DropUDPPort
}

// Refuse sends an ICMP port unreachable for a datagram from remote to local with length bytes of
// payload (RFC 1122 §4.1.3.1). The datagram itself is not available, so the error quotes rebuilt
// headers (RFC 792), whose ports identify the socket.
func (ds *Datagrams) Refuse(now clock.Time, local, remote netip.AddrPort, length int) {
	if local.Addr().IsUnspecified() {
		source, err := ds.routing.sourceTo(remote.Addr())
		if err != nil {
			return
		}
		local = netip.AddrPortFrom(source, local.Port())
	}
	b := ip.Header{
		TotalLen: headerLen(local.Addr()) + udp.HeaderLen + length, TTL: defaultTTL,
		Protocol: ip.ProtoUDP, Src: remote.Addr(), Dst: local.Addr(),
	}.Append(nil)
	b = binary.BigEndian.AppendUint16(b, remote.Port())
	b = binary.BigEndian.AppendUint16(b, local.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(udp.HeaderLen+length))
	b = binary.BigEndian.AppendUint16(b, 0) // RFC 768: zero means no checksum
	i, _ := ds.ifs.onLink(remote.Addr())
	ds.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodePort, b)
}

// Bind opens a UDP socket on one of the node's addresses, or on all of them (0.0.0.0). On a
// multicast or broadcast address it receives only datagrams to that address. Port 0 means a free
// port.
func (ds *Datagrams) Bind(local netip.AddrPort) (*udp.Socket, error) {
	for _, rp := range ds.rips {
		if local.Port() == rp.port && rp.port != 0 {
			return nil, fmt.Errorf("%v, the port of RIP: %w", local, udp.ErrPortInUse)
		}
	}
	a := local.Addr()
	if !isUnset(a) {
		if !ds.ifs.isOwn(a) && !ds.ifs.isBroadcastOrGroupAnywhere(a) {
			return nil, fmt.Errorf("%v: %w", a, ErrNotOurs)
		}
	}
	return ds.udp.Bind(local)
}

// Dial opens a UDP socket that is connected to remote. If the local address is unspecified or
// invalid, Dial uses the address of the route (RFC 1122 §4.1.3.5). Port 0 means a free port.
func (ds *Datagrams) Dial(local, remote netip.AddrPort) (*udp.Socket, error) {
	if !remote.IsValid() || remote.Addr().Is4In6() {
		return nil, fmt.Errorf("%v: %w", remote, udp.ErrAddress)
	}
	if err := ds.ifs.ours(local.Addr()); err != nil {
		return nil, err
	}
	to, err := ds.ifs.Scope(remote.Addr())
	if err != nil {
		return nil, err
	}
	remote = netip.AddrPortFrom(to, remote.Port())
	source, err := ds.routing.sourceTo(to)
	if err != nil {
		return nil, err
	}
	if from := local.Addr().Unmap(); !isUnset(from) {
		source = from
	}
	u, err := ds.udp.Bind(netip.AddrPortFrom(source, local.Port()))
	if err != nil {
		return nil, err
	}
	if err := u.Connect(remote); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// Send sends a datagram from u to an address, or to u's peer if to is invalid. A datagram that is
// larger than the MTU is fragmented. Send fails with ErrTooBig if the socket does not permit that,
// or if the datagram does not fit in a packet, and with ErrQueueFull while the send queue is full.
func (ds *Datagrams) Send(now clock.Time, u *udp.Socket, to netip.AddrPort, payload []byte) error {
	ds.out.memory.reuse()
	return ds.send(now, u, to, payload)
}

// send is like Send, for callers in Output.
func (ds *Datagrams) send(now clock.Time, u *udp.Socket, to netip.AddrPort, payload []byte) error {
	if !to.IsValid() {
		to = u.Remote()
	}
	switch {
	case !to.IsValid():
		return ErrNotConnected
	case to.Addr().Is4In6() || to.Addr().IsUnspecified() || to.Port() == 0:
		return fmt.Errorf("%v: %w", to, udp.ErrAddress)
	case !u.Reaches(to.Addr()):
		return fmt.Errorf("%v: %w", to, udp.ErrFamily)
	case len(payload) > udp.MaxPayload && (to.Addr().Is4() || len(payload) > udp.MaxPayload6):
		return fmt.Errorf("%d bytes: %w", len(payload), ErrTooBig)
	case u.Options().DontFragment && to == u.Remote() &&
		tooLongFor(u.PathMTU(now), to.Addr(), payload):
		return fmt.Errorf("%d bytes, path MTU %d: %w", len(payload), u.PathMTU(now), ErrTooBig)
	case ds.out.bytes >= maxQueuedBytes/2: // the rest is for answers, errors and routing
		return ErrQueueFull
	}
	o := u.Options()
	h := ip.Header{
		Protocol: ip.ProtoUDP, TOS: o.TOS, DF: o.DontFragment, TTL: o.TTL, Dst: to.Addr(),
	}
	i, many, err := ds.link(u, h.Dst)
	if err != nil {
		return err
	}
	local := u.Local().Addr()
	switch {
	case o.Source.IsValid() && !ds.ifs.isOwn(o.Source):
		return fmt.Errorf("%v: %w", o.Source, ErrNotOurs)
	case o.Source.IsValid():
		h.Src = o.Source
	case !local.IsUnspecified() && (u.Admitted() || ds.ifs.isOwn(local)):
		h.Src = local
	case many:
		h.Src = ds.ifs.Source(i, h.Dst)
	default:
		if h.Src, err = ds.routing.sourceTo(h.Dst); err != nil {
			return err
		}
	}
	header := udp.Header{SrcPort: u.Local().Port(), DstPort: to.Port()}
	if h.Is6() {
		h.FlowLabel = ds.out.label(h.Src, h.Dst, header.SrcPort, header.DstPort, ip.ProtoUDP)
	}
	ds.out.datagram = header.Append(ds.out.datagram[:0], h.Src, h.Dst, payload)
	ds.out.checked = true
	if many {
		err = ds.sendMany(now, i, u, h, ds.out.datagram)
	} else {
		err = ds.out.send(now, h, ds.out.datagram)
	}
	ds.out.checked = false
	return err
}

// tooLongFor reports whether a datagram is too long for a path's MTU. An MTU of 0 means unknown.
func tooLongFor(mtu int, to netip.Addr, payload []byte) bool {
	return mtu > 0 && headerLen(to)+udp.HeaderLen+len(payload) > mtu
}

// HasRoom reports whether a sender that met ErrQueueFull should try again.
func (ds *Datagrams) HasRoom() bool { return ds.out.bytes < maxQueuedBytes/4 }

// udpInfo completes the snapshot of a UDP socket.
func udpInfo(c control.Socket, u *udp.Socket) control.Socket {
	c.State, c.RecvQ = "UDP", u.Rx().Len()
	if !c.Remote.IsValid() {
		c.Remote = unspecifiedPeer(c.Local)
	}
	return c
}

// unspecifiedPeer returns the unspecified address of a local address's family.
func unspecifiedPeer(local netip.AddrPort) netip.AddrPort {
	if local.Addr().Is6() {
		return netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
}

// Join lets a socket receive a multicast group's datagrams from interface i.
func (ds *Datagrams) Join(u *udp.Socket, i int, group netip.Addr) error {
	if err := ds.ifs.checkGroup(i, group); err != nil {
		return err
	}
	return u.Join(i, group)
}

// Leave undoes Join.
func (ds *Datagrams) Leave(u *udp.Socket, i int, group netip.Addr) error {
	if err := ds.ifs.checkGroup(i, group); err != nil {
		return err
	}
	return u.Leave(i, group)
}

// link returns the interface for a multicast or broadcast destination. many is false if the
// destination is one host.
func (ds *Datagrams) link(u *udp.Socket, dst netip.Addr) (i int, many bool, err error) {
	if !isGroup(dst) {
		if !ds.ifs.IsBroadcast(dst) {
			return 0, false, nil
		}
		hop, ok := ds.routing.hop(dst)
		return hop.Iface, ok && hop.OnLink && ds.ifs.broadcast(hop.Iface, v4Of(dst)), nil
	}
	if dst.Zone() != "" {
		if i, ok := ds.ifs.zone(dst); ok {
			return i, true, nil
		}
	}
	if i = u.Options().Outlet - 1; i >= 0 && i < len(ds.ifs.list) {
		return i, true, nil
	}
	if i, ok := ds.ifs.Owns(u.Local().Addr()); ok {
		return i, true, nil
	}
	i, ok := ds.routing.outlet(dst)
	if !ok {
		return 0, true, fmt.Errorf("%v: %w", dst, ErrNoRoute)
	}
	return i, true, nil
}

// sendMany sends a multicast or broadcast datagram. The node gets a copy if it is a receiver, as
// RFC 1112 §6.1 says for groups.
func (ds *Datagrams) sendMany(
	now clock.Time, i int, u *udp.Socket, h ip.Header, payload []byte,
) error {
	o := u.Options()
	switch {
	case h.Dst.IsMulticast():
		h.TTL = max(o.MulticastTTL, 1)
	case !o.Broadcast:
		return fmt.Errorf("%v: %w", h.Dst, ErrBroadcast)
	}
	if err := ds.out.sendVia(now, i, h.Dst, h, payload); err != nil {
		return err
	}
	if h.Dst.IsMulticast() && (o.NoLoop || !ds.ifs.joined(i, h.Dst)) {
		return nil
	}
	h.TotalLen, h.TTL = h.Size()+len(payload), cmp.Or(h.TTL, defaultTTL)
	return ds.out.queueLocal(now, i, append(h.Append(nil), payload...))
}
