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

// UDP returns the host's UDP. Its owner is the stack's owner.
func (s *Stack) UDP() *udp.Host { return s.udp }

// datagram hands the payload of a UDP packet to the socket that it is for.
func (s *Stack) datagram(now clock.Time, i int, h *ip.Header, b, payload []byte) ip.DropReason {
	if reason, mine := s.datagramRIP(now, i, h, payload); mine {
		return reason
	}
	s.ports.now = now
	a := udp.Arrival{
		Src: h.Src, Dst: h.Dst, Iface: i, TTL: h.TTL, Foreign: s.foreign(i, h.Dst),
		Checked: s.in.checked,
	}
	verdict := s.udp.Input(a, payload)
	if verdict == udp.NoPort && s.catching.udp && !s.many(i, h.Dst) {
		verdict = s.udp.Hold(a, payload, b)
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
	s.reportError(now, icmp.TypeUnreachable, icmp.CodePort, b)
	return ip.DropUDPPort
}

// RefuseUDP tells remote that nobody took its datagram of so many bytes to local (RFC 1122
// §4.1.3.1). The datagram is gone: of it the error quotes the headers (RFC 792), whose ports tell
// remote which it was.
func (s *Stack) RefuseUDP(now clock.Time, local, remote netip.AddrPort, length int) {
	if !local.Addr().Is4() || !remote.Addr().Is4() {
		return
	}
	if local.Addr().IsUnspecified() {
		source, err := s.sourceTo(remote.Addr().As4())
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
	s.reportError(now, icmp.TypeUnreachable, icmp.CodePort, b)
}

// udpError gives an ICMP error to the socket whose datagram it quotes.
func (s *Stack) udpError(now clock.Time, q icmp.Quote, rest []byte, m *icmp.Message) {
	local := netip.AddrPortFrom(netip.AddrFrom4(q.Src), binary.BigEndian.Uint16(rest))
	remote := netip.AddrPortFrom(netip.AddrFrom4(q.Dst), binary.BigEndian.Uint16(rest[2:]))
	r := m.Report()
	switch {
	case m.Type == icmp.TypeUnreachable && m.Code == icmp.CodeFragNeeded:
		s.udp.TooBig(now, local, remote, q.TotalLen, max(ip.MinMTU, reportedMTU(q, m)))
	case r.Refuses():
		s.udp.Report(local, remote, udp.ErrRefused)
	case r.Lasting():
		s.udp.Report(local, remote, r)
	default:
		s.udp.Report(local, remote, nil)
	}
}

// BindUDP opens a UDP socket on one of the node's addresses, or with 0.0.0.0 on
// all. A group's address has it receive what is for the group and nothing else, once
// it has joined; a broadcast's likewise. Port 0 has one chosen.
func (s *Stack) BindUDP(local netip.AddrPort) (*udp.Socket, error) {
	if local.Port() == rip.Port && s.speaksRIP2() {
		return nil, fmt.Errorf("%v, RIP's: %w", local, udp.ErrPortInUse)
	}
	a := local.Addr()
	if a.Is4() && !a.IsUnspecified() {
		if !s.isHost(a.As4()) && !s.anyMany(a.As4()) {
			return nil, fmt.Errorf("%v: %w", a, ErrNotOurs)
		}
	}
	return s.udp.Bind(local)
}

// DialUDP is DialUDPFrom with address and port left to the node.
func (s *Stack) DialUDP(remote netip.AddrPort) (*udp.Socket, error) {
	return s.DialUDPFrom(netip.AddrPort{}, remote)
}

// DialUDPFrom opens a UDP socket that is connected to remote. A local address that is
// unspecified or invalid is the one that the way there leaves from (RFC 1122
// §4.1.3.5), and a port of 0 has one chosen.
func (s *Stack) DialUDPFrom(local, remote netip.AddrPort) (*udp.Socket, error) {
	if !remote.Addr().Is4() {
		return nil, fmt.Errorf("%v: %w", remote, udp.ErrAddress)
	}
	if err := s.ours(local.Addr()); err != nil {
		return nil, err
	}
	source, err := s.sourceTo(remote.Addr().As4())
	if err != nil {
		return nil, err
	}
	if from := local.Addr().Unmap(); from.Is4() && !from.IsUnspecified() {
		source = from.As4()
	}
	u, err := s.udp.Bind(netip.AddrPortFrom(netip.AddrFrom4(source), local.Port()))
	if err != nil {
		return nil, err
	}
	if err := u.Connect(remote); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

// sourceTo is the address that packets to dst leave from.
func (s *Stack) sourceTo(dst ip.Addr) (ip.Addr, error) {
	if _, self := s.self(dst); self {
		return dst, nil
	}
	i, _, err := s.way(dst)
	if err != nil {
		return ip.Addr{}, err
	}
	return s.interfaces[i].addr, nil
}

// SendUDP sends a datagram from u to the given address, or to u's peer when that
// is invalid. What is longer than the link takes leaves in fragments, unless the socket
// does not permit it: then it fails with ErrTooBig, as with more than a packet holds,
// and with ErrQueueFull while the stack holds too much that links have not taken.
func (s *Stack) SendUDP(now clock.Time, u *udp.Socket, to netip.AddrPort, payload []byte) error {
	s.out.memory.reuse()
	return s.sendUDP(now, u, to, payload)
}

// sendUDP is SendUDP from within Output, too.
func (s *Stack) sendUDP(now clock.Time, u *udp.Socket, to netip.AddrPort, payload []byte) error {
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
	case s.out.bytes >= maxQueuedBytes/2: // the rest is for answers, reports and routing
		return ErrQueueFull
	}
	o := u.Options()
	h := ip.Header{
		Protocol: ip.ProtoUDP, TOS: o.TOS, DF: o.DontFragment, TTL: o.TTL, Dst: to.Addr().As4(),
	}
	if h.TTL == 0 {
		h.TTL = defaultTTL
	}
	i, many, err := s.link(u, h.Dst)
	if err != nil {
		return err
	}
	local := u.Local().Addr()
	switch {
	case !local.IsUnspecified() && (u.Admitted() || s.isHost(local.As4())):
		h.Src = local.As4()
	case many:
		h.Src = s.interfaces[i].addr
	default:
		if h.Src, err = s.sourceTo(h.Dst); err != nil {
			return err
		}
	}
	header := udp.Header{SrcPort: u.Local().Port(), DstPort: to.Port()}
	s.out.datagram = header.Append(s.out.datagram[:0], h.Src, h.Dst, payload)
	s.out.sound = true
	if many {
		err = s.sendMany(now, i, u, h, s.out.datagram)
	} else {
		err = s.send(now, h, s.out.datagram)
	}
	s.out.sound = false
	return err
}

// tooLongFor reports whether a datagram does not fit a path's MTU; 0: any does.
func tooLongFor(mtu int, payload []byte) bool {
	return mtu > 0 && ip.HeaderLen+udp.HeaderLen+len(payload) > mtu
}

// Roomy reports whether the stack's own queue has emptied enough for those who
// met ErrQueueFull to try again.
func (s *Stack) Roomy() bool { return s.out.bytes < maxQueuedBytes/4 }

// udpInfo completes the snapshot of a UDP socket.
func udpInfo(c control.Socket, u *udp.Socket) control.Socket {
	c.State, c.RecvQ = "UDP", u.Rx().Len()
	if !c.Remote.IsValid() {
		c.Remote = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	return c
}
