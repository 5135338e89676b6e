package stack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// Errors of a UDP socket's calls.
var (
	// ErrNotOurs is a local address that no interface has.
	ErrNotOurs = errors.New("not an address of this node")
	// ErrNotConnected is a datagram without a destination.
	ErrNotConnected = errors.New("the socket is not connected")
	// ErrBroadcast is a datagram to all on a link from a socket that does not permit it.
	ErrBroadcast = errors.New("the socket does not permit broadcasts")
)

// Datagrams opens UDP's sockets on the node's addresses and sends what they send.
type Datagrams struct {
	ifs     *Interfaces
	routing *Routing
	out     *sender
	icmp    *icmpHost
	rip     *RIP
	udp     *udp.Host
}

// datagram hands the payload of a UDP packet to the socket that it is for.
func (l *local) datagram(now clock.Time, i int, h *ip.Header, b, payload []byte) ip.DropReason {
	if reason, mine := l.rip.inputDatagram(now, i, h, payload); mine {
		return reason
	}
	l.ports.now = now
	a := udp.Arrival{
		Src: h.Src, Dst: h.Dst, Iface: i, TTL: h.TTL, Foreign: l.foreign(i, h.Dst),
		Checked: l.in.checked,
	}
	verdict := l.udp.Input(a, payload)
	if verdict == udp.NoPort && l.catching.udp && !l.ifs.many(i, h.Dst) {
		verdict = l.udp.Hold(a, payload, b)
	}
	switch verdict {
	case udp.Delivered:
		return ip.DropNone
	case udp.BadHeader:
		return ip.DropUDPHeader
	case udp.BadChecksum:
		return ip.DropUDPChecksum
	case udp.BadSource:
		return ip.DropMartian
	case udp.Full:
		return ip.DropUDPFull
	case udp.NoPort:
	}
	// RFC 1122 §4.1.3.1: nobody listens, and the sender is told. RFC 1122 §3.2.2
	// forbids that where everybody on a link would.
	l.icmp.reportError(now, icmp.TypeUnreachable, icmp.CodePort, b)
	return ip.DropUDPPort
}

// Refuse tells remote that nobody took its datagram of so many bytes to local (RFC 1122
// §4.1.3.1). The datagram is gone: of it the error quotes the headers (RFC 792), whose ports tell
// remote which it was.
func (ds *Datagrams) Refuse(now clock.Time, local, remote netip.AddrPort, length int) {
	if !local.Addr().Is4() || !remote.Addr().Is4() {
		return
	}
	if local.Addr().IsUnspecified() {
		source, err := ds.routing.sourceTo(remote.Addr().As4())
		if err != nil {
			return
		}
		local = netip.AddrPortFrom(netip.AddrFrom4(source), local.Port())
	}
	b := ip.Header{
		TotalLen: ip.HeaderLen + udp.HeaderLen + length, TTL: defaultTTL, Protocol: ip.ProtoUDP,
		Src: remote.Addr().As4(), Dst: local.Addr().As4(),
	}.Append(nil)
	b = binary.BigEndian.AppendUint16(b, remote.Port())
	b = binary.BigEndian.AppendUint16(b, local.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(udp.HeaderLen+length))
	b = binary.BigEndian.AppendUint16(b, 0) // RFC 768: no checksum
	ds.icmp.reportError(now, icmp.TypeUnreachable, icmp.CodePort, b)
}

// Bind opens a UDP socket on one of the node's addresses, or with 0.0.0.0 on
// all. A group's address has it receive what is for the group and nothing else, once
// it has joined; a broadcast's likewise. Port 0 has one chosen.
func (ds *Datagrams) Bind(local netip.AddrPort) (*udp.Socket, error) {
	if local.Port() == rip.Port && ds.rip.speaks2() {
		return nil, fmt.Errorf("%v, RIP's: %w", local, udp.ErrPortInUse)
	}
	a := local.Addr()
	if a.Is4() && !a.IsUnspecified() {
		if !ds.ifs.isHost(a.As4()) && !ds.ifs.anyMany(a.As4()) {
			return nil, fmt.Errorf("%v: %w", a, ErrNotOurs)
		}
	}
	return ds.udp.Bind(local)
}

// Dial opens a UDP socket that is connected to remote. A local address that is
// unspecified or invalid is the one that the way there leaves from (RFC 1122
// §4.1.3.5), and a port of 0 has one chosen.
func (ds *Datagrams) Dial(local, remote netip.AddrPort) (*udp.Socket, error) {
	if !remote.Addr().Is4() {
		return nil, fmt.Errorf("%v: %w", remote, udp.ErrAddress)
	}
	if err := ds.ifs.ours(local.Addr()); err != nil {
		return nil, err
	}
	source, err := ds.routing.sourceTo(remote.Addr().As4())
	if err != nil {
		return nil, err
	}
	if from := local.Addr().Unmap(); from.Is4() && !from.IsUnspecified() {
		source = from.As4()
	}
	u, err := ds.udp.Bind(netip.AddrPortFrom(netip.AddrFrom4(source), local.Port()))
	if err != nil {
		return nil, err
	}
	if err := u.Connect(remote); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// Send sends a datagram from u to the given address, or to u's peer when that
// is invalid. What is longer than the link takes leaves in fragments, unless the socket
// does not permit it: then it fails with ErrTooBig, as with more than a packet holds,
// and with ErrQueueFull while the stack holds too much that links have not taken.
func (ds *Datagrams) Send(now clock.Time, u *udp.Socket, to netip.AddrPort, payload []byte) error {
	ds.out.memory.reuse()
	return ds.send(now, u, to, payload)
}

// send is Send from within Output, too.
func (ds *Datagrams) send(now clock.Time, u *udp.Socket, to netip.AddrPort, payload []byte) error {
	if !to.IsValid() {
		to = u.Remote()
	}
	switch {
	case !to.IsValid():
		return ErrNotConnected
	case !to.Addr().Is4() || to.Addr().IsUnspecified() || to.Port() == 0:
		return fmt.Errorf("%v: %w", to, udp.ErrAddress)
	case len(payload) > udp.MaxPayload:
		return fmt.Errorf("%d bytes: %w", len(payload), ErrTooBig)
	case u.Options().DontFragment && to == u.Remote() && tooLongFor(u.PathMTU(now), payload):
		return fmt.Errorf("%d bytes over %d: %w", len(payload), u.PathMTU(now), ErrTooBig)
	case ds.out.bytes >= maxQueuedBytes/2: // the rest is for answers, reports and routing
		return ErrQueueFull
	}
	o := u.Options()
	h := ip.Header{
		Protocol: ip.ProtoUDP, TOS: o.TOS, DF: o.DontFragment, TTL: o.TTL, Dst: to.Addr().As4(),
	}
	if h.TTL == 0 {
		h.TTL = defaultTTL
	}
	i, many, err := ds.link(u, h.Dst)
	if err != nil {
		return err
	}
	local := u.Local().Addr()
	switch {
	case !local.IsUnspecified() && (u.Admitted() || ds.ifs.isHost(local.As4())):
		h.Src = local.As4()
	case many:
		h.Src = ds.ifs.list[i].addr
	default:
		if h.Src, err = ds.routing.sourceTo(h.Dst); err != nil {
			return err
		}
	}
	header := udp.Header{SrcPort: u.Local().Port(), DstPort: to.Port()}
	ds.out.datagram = header.Append(ds.out.datagram[:0], h.Src, h.Dst, payload)
	ds.out.sound = true
	if many {
		err = ds.sendMany(now, i, u, h, ds.out.datagram)
	} else {
		err = ds.out.send(now, h, ds.out.datagram)
	}
	ds.out.sound = false
	return err
}

// tooLongFor reports whether a datagram does not fit a path's MTU; 0: any does.
func tooLongFor(mtu int, payload []byte) bool {
	return mtu > 0 && ip.HeaderLen+udp.HeaderLen+len(payload) > mtu
}

// Roomy reports whether the stack's own queue has emptied enough for those who
// met ErrQueueFull to try again.
func (ds *Datagrams) Roomy() bool { return ds.out.bytes < maxQueuedBytes/4 }

// udpInfo completes the snapshot of a UDP socket.
func udpInfo(c control.Socket, u *udp.Socket) control.Socket {
	c.State, c.RecvQ = "UDP", u.Rx().Len()
	if !c.Remote.IsValid() {
		c.Remote = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	return c
}

// Join has a socket receive what interface i brings for a group and its port.
func (ds *Datagrams) Join(u *udp.Socket, i int, group netip.Addr) error {
	if err := ds.ifs.checkGroup(i, group); err != nil {
		return err
	}
	return u.Join(i, group.As4())
}

// Leave undoes Join.
func (ds *Datagrams) Leave(u *udp.Socket, i int, group netip.Addr) error {
	if err := ds.ifs.checkGroup(i, group); err != nil {
		return err
	}
	return u.Leave(i, group.As4())
}

// link finds the interface on whose link all nodes, or those of a group, are to get a
// socket's datagram; many is false when dst is one host.
func (ds *Datagrams) link(u *udp.Socket, dst ip.Addr) (i int, many bool, err error) {
	if !isGroup(dst) && dst != limited {
		hop, ok := ds.routing.hop(dst)
		return hop.Iface, ok && hop.OnLink && ds.ifs.broadcast(hop.Iface, dst), nil
	}
	if i = u.Options().Outlet - 1; i >= 0 && i < len(ds.ifs.list) {
		return i, true, nil
	}
	if local := u.Local().Addr(); local.Is4() {
		if i, ok := ds.ifs.own[local.As4()]; ok {
			return i, true, nil
		}
	}
	i, ok := ds.routing.outlet(dst)
	if !ok {
		return 0, true, fmt.Errorf("%v: %w", netip.AddrFrom4(dst), ErrNoRoute)
	}
	return i, true, nil
}

// sendMany sends a socket's datagram to all on a link, or to a group there. The node
// itself gets a copy if it is among them, as RFC 1112 §6.1 has it for groups.
func (ds *Datagrams) sendMany(
	now clock.Time, i int, u *udp.Socket, h ip.Header, payload []byte,
) error {
	o := u.Options()
	switch {
	case isGroup(h.Dst):
		h.TTL = max(o.MulticastTTL, 1)
	case !o.Broadcast:
		return fmt.Errorf("%v: %w", netip.AddrFrom4(h.Dst), ErrBroadcast)
	}
	if err := ds.out.sendVia(now, i, h.Dst, h, payload); err != nil {
		return err
	}
	if isGroup(h.Dst) && (o.NoLoop || !ds.ifs.joined(i, h.Dst)) {
		return nil
	}
	h.TotalLen = h.Size() + len(payload)
	return ds.out.queueLocal(now, i, append(h.Append(nil), payload...))
}
