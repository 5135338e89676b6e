package udp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// These are the errors of calls, and ICMP errors for a connected socket.
var (
	// ErrPortInUse means that another socket uses the port, on this address or on all addresses.
	ErrPortInUse = errors.New("port in use")
	// ErrNoPorts means that all ephemeral ports are in use.
	ErrNoPorts = errors.New("no free ports")
	// ErrAddress means that the address cannot be bound or connected to.
	ErrAddress = errors.New("invalid address of a UDP socket")
	// ErrFamily means that the socket is of the other IP version.
	ErrFamily = errors.New("the socket is of the other IP version")
	// ErrRefused means that an ICMP error reported that the port or protocol is unreachable.
	ErrRefused = errors.New("connection refused")
	// ErrTooBig means that a datagram was larger than the MTU of a link on the path.
	ErrTooBig = errors.New("message too long")
)

// Config configures a host's UDP.
type Config struct {
	// Rand chooses ports. It must be set.
	Rand *rand.Rand
	// RecvBuffer is the size of a socket's receive queue in bytes; 0: 256 KiB. Each datagram uses
	// at least 256 bytes of it.
	RecvBuffer int
}

const defaultRecvBuffer = 256 << 10

// These are the dynamic ports of RFC 6335 §6.
const (
	firstPort = 49152
	numPorts  = 65536 - firstPort
)

// Host is the UDP of one host. Only one owner may call the host and its sockets.
type Host struct {
	cfg      Config
	sockets  map[netip.AddrPort]*Socket // a socket for both families has two entries
	ports    map[netip.AddrPort]int     // number of sockets by port, with the key of anywhere
	groups   map[membership]int
	changes  int // number of changes of groups
	notified []*Socket
	catch    catch
}

// NewHost returns a host without sockets.
func NewHost(cfg Config) *Host {
	if cfg.RecvBuffer <= 0 {
		cfg.RecvBuffer = defaultRecvBuffer
	}
	return &Host{
		cfg: cfg, sockets: map[netip.AddrPort]*Socket{}, ports: map[netip.AddrPort]int{},
		groups: map[membership]int{},
	}
}

// Bind opens a socket. The local address 0.0.0.0 means all IPv4 addresses of the host, and :: means
// all addresses of both families. Port 0 chooses a port. The caller must check that the address is
// the host's.
func (h *Host) Bind(local netip.AddrPort) (*Socket, error) {
	return h.bind(local, local.Addr() == netip.IPv6Unspecified())
}

// BindIPv6 is like Bind, for all IPv6 addresses and no IPv4 addresses (RFC 3493 §5.3, IPV6_V6ONLY).
func (h *Host) BindIPv6(port uint16) (*Socket, error) {
	return h.bind(netip.AddrPortFrom(netip.IPv6Unspecified(), port), false)
}

func (h *Host) bind(local netip.AddrPort, dual bool) (*Socket, error) {
	if !local.Addr().IsValid() {
		return nil, fmt.Errorf("%v: %w", local, ErrAddress)
	}
	if local.Port() == 0 {
		port, ok := h.ephemeral()
		if !ok {
			return nil, ErrNoPorts
		}
		local = netip.AddrPortFrom(local.Addr(), port)
	}
	s := &Socket{host: h, local: local, dual: dual}
	if slices.ContainsFunc(s.places(), h.taken) {
		return nil, fmt.Errorf("%v: %w", local, ErrPortInUse)
	}
	s.rx = buffer.NewRing(h.cfg.RecvBuffer)
	for _, at := range s.places() {
		h.sockets[at] = s
		h.ports[anywhere(at)]++
	}
	return s, nil
}

// taken reports whether a socket uses the port on that address. A socket for all addresses
// conflicts with every address.
func (h *Host) taken(at netip.AddrPort) bool {
	return h.at(at) != nil || at.Addr().IsUnspecified() && h.ports[at] > 0
}

// at returns the socket that is bound to an address. If there is none, it returns the socket for
// all addresses of the family, or nil.
func (h *Host) at(local netip.AddrPort) *Socket {
	if s := h.sockets[local]; s != nil {
		return s
	}
	return h.sockets[anywhere(local)]
}

// anywhere returns the port with the unspecified address of the family.
func anywhere(at netip.AddrPort) netip.AddrPort {
	if at.Addr().Is4() {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port())
}

// Uses reports whether a socket uses the port on any IPv4 address.
func (h *Host) Uses(port uint16) bool {
	return h.ports[netip.AddrPortFrom(netip.IPv4Unspecified(), port)] > 0
}

// ephemeral chooses a random port, or the next free one after it (RFC 6056 §3.3.1). A socket has no
// peer to hash when it is bound, so the double hash of TCP's ports does not apply.
func (h *Host) ephemeral() (uint16, bool) {
	start := h.cfg.Rand.IntN(numPorts)
	for i := range numPorts {
		port := uint16(firstPort + (start+i)%numPorts)
		at := netip.AddrPortFrom(netip.IPv6Unspecified(), port)
		if h.ports[at] == 0 && h.ports[netip.AddrPortFrom(netip.IPv4Unspecified(), port)] == 0 {
			return port, true
		}
	}
	return 0, false
}

// Verdict is the result of processing a datagram.
type Verdict uint8

// These are the verdicts.
const (
	// Delivered means that the datagram waits to be read.
	Delivered Verdict = iota
	// BadHeader means that the length is invalid.
	BadHeader
	// BadChecksum means that the checksum is wrong.
	BadChecksum
	// NoChecksum means that an IPv6 datagram has no checksum, which RFC 8200 §8.1 requires.
	NoChecksum
	// BadSource means that the source cannot be a host.
	BadSource
	// NoPort means that no socket accepts the datagram.
	NoPort
	// Full means that the socket's queue is full.
	Full
)

// Arrival is the IP header of a datagram, and the interface on which it arrived.
type Arrival struct {
	Src, Dst netip.Addr
	Iface    int
	TTL      uint8
	Foreign  bool // another host's address: only an admitted flow receives it
	Checked  bool // the checksum is known to be correct and is not verified
}

// fromHost reports whether the source can be a host. An IPv4 host without an address may send to
// all nodes on the link (RFC 1122 §3.2.1.3). A loopback source needs a loopback destination: such
// packets came from the node itself. A packet must not have an IPv4-mapped IPv6 source (RFC 4291
// §2.5.5), because the answer would leave over IPv4.
func (a *Arrival) fromHost() bool {
	if a.Src.Is6() {
		return !a.Src.IsMulticast() && !a.Src.IsUnspecified() && !a.Src.Is4In6() &&
			(!a.Src.IsLoopback() || a.Dst.IsLoopback())
	}
	switch first := a.Src.As4()[0]; first {
	case 0:
		return a.Src.IsUnspecified() && a.Dst == netip.AddrFrom4([4]byte{255, 255, 255, 255})
	case 127:
		return a.Dst.IsLoopback()
	default:
		return first < 224
	}
}

// Input processes the payload of an IP packet of protocol 17.
func (h *Host) Input(a Arrival, b []byte) Verdict {
	header, payload, ok := ParseHeader(b)
	switch {
	case !ok:
		return BadHeader
	case header.Checksum == 0 && a.Src.Is6():
		return NoChecksum
	case !a.Checked && !header.Verify(a.Src, a.Dst, b):
		return BadChecksum
	case !a.fromHost():
		// RFC 1122 §4.1.3.6: discard datagrams whose source is not a host.
		return BadSource
	}
	from := netip.AddrPortFrom(a.Src, header.SrcPort)
	to := netip.AddrPortFrom(a.Dst, header.DstPort)
	s := h.ofFlow(to, from)
	if s == nil && !a.Foreign {
		s = h.find(to, from)
	}
	switch {
	case s == nil || a.Dst.IsMulticast() && !s.member(a.Iface, a.Dst):
		return NoPort
	case !s.deliver(from, &a, payload):
		return Full
	}
	return Delivered
}

// Receives reports whether a socket receives the datagrams of a flow.
func (h *Host) Receives(f Flow) bool {
	return h.ofFlow(f.Local, f.Remote) != nil || h.find(f.Local, f.Remote) != nil
}

// find returns the socket for a datagram that belongs to no admitted flow. This is the socket that
// is bound to the datagram's address, or else a socket for all addresses. It returns nil if no
// socket matches, or if the socket is connected to another peer.
func (h *Host) find(to, from netip.AddrPort) *Socket {
	if s := h.at(to); s != nil && s.accepts(from) {
		return s
	}
	return nil
}

// Report passes an ICMP error to the connected socket that sent the datagram (RFC 1122 §4.1.3.3).
// An unconnected socket gets no error, because its next call may be about another peer. A nil error
// is only counted, because it does not affect the next datagram.
func (h *Host) Report(local, remote netip.AddrPort, err error) {
	if s := h.sender(local, remote); s != nil {
		s.fail(err)
	}
}

// sender returns the connected socket with these ends, or nil.
func (h *Host) sender(local, remote netip.AddrPort) *Socket {
	s := h.ofFlow(local, remote)
	if s == nil {
		s = h.at(local)
	}
	if s == nil || s.remote != remote {
		return nil
	}
	return s
}

// notify queues the socket for Next.
func (h *Host) notify(s *Socket) {
	if !s.notified {
		s.notified = true
		h.notified = append(h.notified, s)
	}
}

// Next returns a socket that has received a datagram or an error since Next last returned it.
func (h *Host) Next() (*Socket, bool) {
	if len(h.notified) == 0 {
		return nil, false
	}
	last := len(h.notified) - 1
	s := h.notified[last]
	h.notified[last] = nil
	h.notified = h.notified[:last]
	s.notified = false
	return s, true
}
