package simulation

import (
	"net/netip"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/stack"
)

// Side is left or right: a bit of the addresses. 10.0.0.0/9 has the left side's networks and
// 10.128.0.0/9 the right side's, each with 256 addresses per flow.
type Side byte

// These are the sides.
const (
	Left  Side = 0
	Right Side = 128
)

// MaxFlows is the number of flows that have addresses.
const MaxFlows = 1 << 15

// These are host numbers in the networks of the flows.
const (
	RouterNumber = 1
	HostNumber   = 2
)

// Port is the port on which the end that does not dial listens.
const Port = 5001

// Other returns the opposite side.
func (s Side) Other() Side { return s ^ Left ^ Right }

// Address returns an address in the network of a flow.
func (s Side) Address(flow int, host byte) netip.Addr {
	return netip.AddrFrom4([4]byte{ourNetwork, byte(s) | byte(flow>>8), byte(flow), host})
}

// Prefix returns the prefix of all networks of a side.
func (s Side) Prefix() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{ourNetwork, byte(s), 0, 0}), 9)
}

// address returns an address in the network of a flow, for the path's IP version. The IPv4 address
// 10.x.y.z corresponds to the IPv6 address 2001:db8:xy::z, with each byte in hexadecimal.
func (r *run) address(s Side, flow int, host byte) netip.Addr {
	a := s.Address(flow, host)
	if !r.x.Path.IPv6 {
		return a
	}
	b := a.As4()
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, b[1], b[2], 15: host})
}

func (r *run) prefix(s Side) netip.Prefix {
	if r.x.Path.IPv6 {
		return netip.PrefixFrom(r.address(s, 0, 0), 33)
	}
	return s.Prefix()
}

func face(name string, mtu int, a netip.Addr, bits int) stack.Interface {
	if a.Is6() {
		return stack.Interface{Name: name, MTU: mtu, IPv6: []netip.Prefix{netip.PrefixFrom(a, 64)}}
	}
	return stack.Interface{Name: name, MTU: mtu, Addr: netip.PrefixFrom(a, bits)}
}

// These are names of interfaces.
const (
	BottleneckIface = "bottleneck" // interface of both routers
	HostIface       = "if0"
)

// RouterIface returns the name of a router's interface to a flow's host.
func RouterIface(flow int) string { return "if" + strconv.Itoa(flow+1) }

// Router returns the name of a side's router.
func (s Side) Router() string { return "router " + s.String() }

// Host returns the name of a host of a flow.
func (s Side) Host(flow int) string { return s.String() + " " + strconv.Itoa(flow+1) }

func (s Side) String() string {
	if s == Right {
		return "right"
	}
	return "left"
}

// WhoseAddress returns the flow and the side of a host's address. It returns false for other
// addresses.
func WhoseAddress(a netip.Addr) (flow int, side Side, ok bool) {
	b := a.As4()
	if b[0] != ourNetwork || b[3] != HostNumber {
		return 0, Left, false
	}
	return int(b[1]&^byte(Right))<<8 | int(b[2]), Side(b[1] & byte(Right)), true
}
