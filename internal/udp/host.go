package udp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// Errors of the calls, and those that ICMP has a connected socket report.
var (
	// ErrPortInUse is a port that another socket has, on this address or on all.
	ErrPortInUse = errors.New("port in use")
	// ErrNoPorts is a host whose ephemeral ports are all taken.
	ErrNoPorts = errors.New("no free ports")
	// ErrAddress is an address that cannot be bound or connected to.
	ErrAddress = errors.New("not the address of a UDP socket")
	// ErrRefused is a port or protocol unreachable: nobody listens there.
	ErrRefused = errors.New("connection refused")
	// ErrTooBig is a report that a datagram was larger than a link on the way takes.
	ErrTooBig = errors.New("message too long")
)

// Config describes a host's UDP.
type Config struct {
	// Rand chooses ports; required.
	Rand *rand.Rand
	// RecvBuffer is how many bytes a socket queues for its reader, where no
	// datagram counts less than 256; 0: 256 KiB.
	RecvBuffer int
}

const defaultRecvBuffer = 256 << 10

// The dynamic ports of RFC 6335 §6.
const (
	firstPort = 49152
	numPorts  = 65536 - firstPort
)

// Host is the UDP of one host. One owner calls it and its sockets.
type Host struct {
	cfg     Config
	sockets map[netip.AddrPort]*Socket
	ports   map[uint16]int // how many sockets have the port, on whatever address
	groups  map[membership]int
	news    []*Socket
	catch   catch
}

// NewHost returns a host without sockets.
func NewHost(cfg Config) *Host {
	if cfg.RecvBuffer <= 0 {
		cfg.RecvBuffer = defaultRecvBuffer
	}
	return &Host{
		cfg: cfg, sockets: map[netip.AddrPort]*Socket{}, ports: map[uint16]int{},
		groups: map[membership]int{},
	}
}

// Bind opens a socket. A local address of 0.0.0.0 takes what is for any of the
// host's; port 0 has one chosen. The caller has made sure that the address is
// the host's own.
func (h *Host) Bind(local netip.AddrPort) (*Socket, error) {
	if !local.Addr().Is4() {
		return nil, fmt.Errorf("%v: %w", local, ErrAddress)
	}
	if local.Port() == 0 {
		port, ok := h.ephemeral()
		if !ok {
			return nil, ErrNoPorts
		}
		local = netip.AddrPortFrom(local.Addr(), port)
	} else if h.conflicts(local) {
		return nil, fmt.Errorf("%v: %w", local, ErrPortInUse)
	}
	s := &Socket{host: h, local: local, rx: buffer.NewRing(h.cfg.RecvBuffer)}
	h.sockets[local] = s
	h.ports[local.Port()]++
	return s, nil
}

// conflicts reports whether a socket has the port on that address, or one of the
// two is for all addresses.
func (h *Host) conflicts(local netip.AddrPort) bool {
	if h.ports[local.Port()] == 0 {
		return false
	}
	_, same := h.sockets[local]
	return same || local.Addr().IsUnspecified() || h.wildcard(local.Port()) != nil
}

func (h *Host) wildcard(port uint16) *Socket {
	return h.sockets[netip.AddrPortFrom(netip.IPv4Unspecified(), port)]
}

// ephemeral chooses a port that nobody has. RFC 6056 §3.3.1: any with equal
// chance, and where that is taken the next one that is free. A datagram socket
// has no peer to hash when it is bound, so the double hash of TCP's ports is not
// for it.
func (h *Host) ephemeral() (uint16, bool) {
	start := h.cfg.Rand.IntN(numPorts)
	for i := range numPorts {
		port := uint16(firstPort + (start+i)%numPorts)
		if h.ports[port] == 0 {
			return port, true
		}
	}
	return 0, false
}

func (h *Host) release(port uint16) {
	if h.ports[port]--; h.ports[port] == 0 {
		delete(h.ports, port)
	}
}

// Verdict is what became of a datagram.
type Verdict uint8

// The verdicts.
const (
	// Delivered is a datagram that waits to be read.
	Delivered Verdict = iota
	// BadHeader is one whose length cannot be right.
	BadHeader
	// BadChecksum is one that was damaged.
	BadChecksum
	// BadSource is one from an address that cannot be a host's.
	BadSource
	// NoPort is one that nobody listens for.
	NoPort
	// Full is one that its socket had no room for.
	Full
)

// Arrival is what the IP header of a datagram says, and where it came by.
type Arrival struct {
	Src, Dst Addr
	Iface    int
	TTL      uint8
	Foreign  bool // for none of the host's own addresses: only an admitted flow's socket takes it
	Checked  bool // the datagram is as it was sent: the checksum is not verified
}

// fromHost reports whether the source can be a host's. One that has no address yet may
// ask all on the link for it (RFC 1122 §3.2.1.3), and what is for 127/8 came from the node
// itself, or it would not be here.
func (a *Arrival) fromHost() bool {
	switch a.Src[0] {
	case 0:
		return a.Src == Addr{} && a.Dst == Addr{255, 255, 255, 255}
	case 127:
		return a.Dst[0] == 127
	}
	return a.Src[0] < 224
}

// Input takes the payload of an IP packet of protocol 17.
func (h *Host) Input(a Arrival, b []byte) Verdict {
	header, payload, ok := ParseHeader(b)
	switch {
	case !ok:
		return BadHeader
	case !a.Checked && !header.Verify(a.Src, a.Dst, b):
		return BadChecksum
	case !a.fromHost():
		// RFC 1122 §4.1.3.6: a source that is no host's has the datagram discarded.
		return BadSource
	}
	from := netip.AddrPortFrom(netip.AddrFrom4(a.Src), header.SrcPort)
	to := netip.AddrPortFrom(netip.AddrFrom4(a.Dst), header.DstPort)
	s := h.ofFlow(to, from)
	if s == nil && !a.Foreign {
		s = h.find(to, from)
	}
	switch {
	case s == nil || isGroup(a.Dst) && !s.member(a.Iface, a.Dst):
		return NoPort
	case !s.deliver(from, &a, payload):
		return Full
	}
	return Delivered
}

// isGroup reports whether an address is that of a host group (RFC 1112 §4).
func isGroup(a Addr) bool { return a[0]&0xf0 == 224 }

// find returns the socket for a datagram of no admitted flow: that on its address, else
// one for all addresses; nil if there is none, or it is connected to another peer.
func (h *Host) find(to, from netip.AddrPort) *Socket {
	s := h.sockets[to]
	if s == nil {
		s = h.wildcard(to.Port())
	}
	if s == nil || !s.hears(from) {
		return nil
	}
	return s
}

// Report tells the socket that sent the datagram of an ICMP error about it.
// RFC 1122 §4.1.3.3 wants errors passed to the application. A socket that is not
// connected has nobody's calls to fail, so it is not told: what one peer lacks is
// nothing to the others. A nil error is only counted: it says nothing of the next datagram.
func (h *Host) Report(local, remote netip.AddrPort, err error) {
	if s := h.sender(local, remote); s != nil {
		s.fail(err)
	}
}

// sender returns the connected socket that sends datagrams of those ends; nil: none.
func (h *Host) sender(local, remote netip.AddrPort) *Socket {
	s := h.ofFlow(local, remote)
	if s == nil {
		s = h.sockets[local]
	}
	if s == nil {
		s = h.wildcard(local.Port())
	}
	if s == nil || s.remote != remote {
		return nil
	}
	return s
}

// tell notes that the socket has something new for its owner.
func (h *Host) tell(s *Socket) {
	if !s.told {
		s.told = true
		h.news = append(h.news, s)
	}
}

// Next returns a socket that has received something, or has an error, since it
// was last returned here.
func (h *Host) Next() (*Socket, bool) {
	if len(h.news) == 0 {
		return nil, false
	}
	last := len(h.news) - 1
	s := h.news[last]
	h.news[last] = nil
	h.news = h.news[:last]
	s.told = false
	return s, true
}
