package control

import (
	"net/netip"
	"slices"
	"time"
)

// Interfaces lists the interfaces, in the order of the configuration.
type Interfaces struct{ Answer[[]Interface] }

// Interface is one virtual network interface.
type Interface struct {
	Index int          `json:"index"`
	Name  string       `json:"name"`
	Addr  netip.Prefix `json:"addr"` // address, and prefix length of its network
	// IPv6 are its IPv6 addresses, the link-local one last if it was not configured.
	IPv6 []netip.Prefix `json:"ipv6,omitempty"`
	// Addresses are the IPv6 addresses with their states, on a link with neighbor discovery.
	Addresses []Address `json:"addresses,omitempty"`
	Up        bool      `json:"up"`
	// Problem is why an interface that is up cannot send; empty: it can.
	Problem string `json:"problem,omitempty"`
	UDP     string `json:"udp"` // bound UDP address, or "tun:DEV"
	MTU     int    `json:"mtu"`
	// Offload is how its datagrams reach the kernel: "gso", "mmsg", "plain", "tun" or
	// "tun+gso".
	Offload     string   `json:"offload"`
	LossPercent float64  `json:"loss_percent"` // share of forwarded packets that the node drops
	In          Counters `json:"in"`
	Out         Counters `json:"out"`
	// Device has the counters of the underlying device; nil: no device.
	Device *DeviceCounters `json:"device,omitempty"`
}

// Address is an IPv6 address on a link with neighbor discovery.
type Address struct {
	Prefix netip.Prefix `json:"prefix"`
	// State is "tentative" during duplicate address detection, then "preferred", then "deprecated":
	// new connections use other addresses.
	State string `json:"state"`
	// Preferred and Valid are the remaining lifetimes; absent: the address does not expire.
	Preferred time.Duration `json:"preferred_ns,omitempty"`
	Valid     time.Duration `json:"valid_ns,omitempty"`
}

// Addrs returns the interface's addresses, IPv4 first. There is at least one.
func (i *Interface) Addrs() []netip.Prefix {
	if !i.Addr.IsValid() {
		return i.IPv6
	}
	return append([]netip.Prefix{i.Addr}, i.IPv6...)
}

// Has reports whether a is one of the interface's addresses, with its name as zone if it is
// link-local.
func (i *Interface) Has(a netip.Addr) bool {
	return (a.Zone() == "" || a.Zone() == i.Name) && slices.ContainsFunc(i.Addrs(),
		func(p netip.Prefix) bool { return p.Addr() == a.WithZone("") })
}

// DeviceCounters count the packets that crossed between an interface and the kernel. Impairments
// apply between these counters and the interface's own.
type DeviceCounters struct {
	InPackets  uint64 `json:"in_packets"`
	InBytes    uint64 `json:"in_bytes"`
	OutPackets uint64 `json:"out_packets"`
	OutBytes   uint64 `json:"out_bytes"`
	Oversize   uint64 `json:"oversize"` // InPackets that were larger than the MTU
	Waited     uint64 `json:"waited"`   // OutPackets that had to wait for room
}

// Counters count one direction of an interface since the node started, or since ClearCounters.
type Counters struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Errors  uint64 `json:"errors"` // packets that the underlying device refused
	// Fragments counts fragments: in, of datagrams for this node; out, of packets too long for
	// the link. Fragmented counts the packets that were reassembled or fragmented.
	Fragments  uint64 `json:"fragments,omitempty"`
	Fragmented uint64 `json:"fragmented,omitempty"`
	// Delivered counts received packets that a protocol of the node accepted. Forwarded counts
	// those that the node forwarded. The sum with Drops is the number of received packets.
	Delivered uint64 `json:"delivered,omitempty"`
	Forwarded uint64 `json:"forwarded,omitempty"`
	// Drops lists the reasons that occurred, in a stable order. Packets includes received packets
	// that were dropped.
	Drops []Drop `json:"drops,omitempty"`
}

// Drop is how many packets were dropped for one reason.
type Drop struct {
	Reason  string `json:"reason"`
	Packets uint64 `json:"packets"`
}

// Neighbors lists the neighbors on the links that are up.
type Neighbors struct{ Answer[[]Neighbor] }

// Neighbor is one node at the other end of an interface.
type Neighbor struct {
	Iface string     `json:"iface"`
	Addr  netip.Addr `json:"addr"`
	UDP   string     `json:"udp"`
	// State is empty if it is unknown: behind a TUN device or a program's link.
	State NeighborState `json:"state,omitempty"`
	Since time.Duration `json:"since_ns"` // time in this state
	Heard time.Duration `json:"heard_ns"` // time since the neighbor was last heard; negative: never
	In    uint64        `json:"in"`       // packets received from the neighbor
	Out   uint64        `json:"out"`      // packets sent to the neighbor
	// Problem is why it is unreachable, or why its host name was not found.
	Problem string `json:"problem,omitempty"`
	// Line is the place in the .lnx file, such as A.lnx:3; empty: not from a file.
	Line string `json:"line,omitempty"`
}

// NeighborState says whether a neighbor is reachable.
type NeighborState string

// These are the states of a neighbor.
const (
	NeighborUnknown     NeighborState = "unknown"     // not heard yet, but no reply is missing
	NeighborUp          NeighborState = "up"          // the neighbor was heard recently
	NeighborSilent      NeighborState = "silent"      // the neighbor does not answer
	NeighborRefused     NeighborState = "refused"     // the neighbor's UDP port is closed
	NeighborUnreachable NeighborState = "unreachable" // packets to the neighbor cannot be sent
	NeighborUnresolved  NeighborState = "unresolved"  // the neighbor's host name has no address yet
	// The states of neighbor discovery (RFC 4861 §7.3.2), on a TUN device.
	// NeighborReachable means that the neighbor has answered in the last half minute.
	NeighborReachable NeighborState = "reachable"
	NeighborStale     NeighborState = "stale" // the neighbor may be unreachable
	NeighborDelay     NeighborState = "delay" // a packet was sent to the stale neighbor
	NeighborProbe     NeighborState = "probe" // the node is asking the neighbor for an answer
)

// SetLink takes an interface up or down, by name or by number.
type SetLink struct {
	Answer[Interface]
	Iface string `json:"iface"`
	Up    bool   `json:"up"`
}

// Loss returns the share of forwarded packets that each interface drops.
type Loss struct {
	Answer[[]LinkLoss]
	Iface string `json:"iface,omitempty"` // name or number of the interface; empty: every interface
}

// SetLoss drops a share of the packets forwarded over an interface, in both directions, and returns
// the interfaces that it changed.
type SetLoss struct {
	Answer[[]LinkLoss]
	Percent float64 `json:"percent"` // share of packets to drop, from 0 to 100
	// name or number of the interface; empty: every interface
	Iface string `json:"iface,omitempty"`
}

// LinkLoss is the loss set on one interface.
type LinkLoss struct {
	Iface   string  `json:"iface"`
	Percent float64 `json:"percent"`
	Dropped uint64  `json:"dropped"` // dropped packets
}

// ClearCounters sets the counters of Interfaces and Impairments to zero.
type ClearCounters struct {
	Answer[Nothing]
	Iface string `json:"iface,omitempty"` // name or number of the interface; empty: every interface
}
