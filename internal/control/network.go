package control

import (
	"net/netip"
	"time"
)

// Interfaces asks for every interface, in the order of the configuration; answer []Interface.
type Interfaces struct{}

func (Interfaces) answers([]Interface) {}

// Interface is one virtual network interface.
type Interface struct {
	Index int          `json:"index"`
	Name  string       `json:"name"`
	Addr  netip.Prefix `json:"addr"` // the address and the length of its network
	Up    bool         `json:"up"`
	// Problem is why nothing leaves by it although nobody took it down; empty: no such thing.
	Problem string `json:"problem,omitempty"`
	UDP     string `json:"udp"` // the address it is bound to, or "tun:DEV"
	MTU     int    `json:"mtu"`
	// Offload is how its datagrams reach the kernel: "gso", "mmsg", "plain", "tun" or
	// "tun+gso".
	Offload     string   `json:"offload"`
	LossPercent float64  `json:"loss_percent"` // of what is forwarded over it
	In          Counters `json:"in"`
	Out         Counters `json:"out"`
	// Device is what the device beneath has counted; nil: it counts nothing.
	Device *DeviceCounters `json:"device,omitempty"`
}

// DeviceCounters count what crossed the boundary to the kernel at an interface. What impair does
// lies between them and the interface's own.
type DeviceCounters struct {
	InPackets  uint64 `json:"in_packets"`
	InBytes    uint64 `json:"in_bytes"`
	OutPackets uint64 `json:"out_packets"`
	OutBytes   uint64 `json:"out_bytes"`
	Oversize   uint64 `json:"oversize"` // of InPackets, those larger than the MTU
	Waited     uint64 `json:"waited"`   // of OutPackets, those that it had no room for at first
}

// Counters count one direction of an interface since the node started, or ClearCounters.
type Counters struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Errors  uint64 `json:"errors"` // refused by the device beneath
	// Fragments are those of the packets that were fragments: in, of datagrams for this node;
	// out, of packets too long for the link. Fragmented counts what they made, or were made of.
	Fragments  uint64 `json:"fragments,omitempty"`
	Fragmented uint64 `json:"fragmented,omitempty"`
	// Delivered and Forwarded are, of the packets that arrived, those that a protocol of the
	// node has taken and those for others that had a way: with Drops they are all.
	Delivered uint64 `json:"delivered,omitempty"`
	Forwarded uint64 `json:"forwarded,omitempty"`
	// Drops lists the reasons that occurred, in a stable order; packets that were dropped count
	// under Packets too if they had arrived.
	Drops []Drop `json:"drops,omitempty"`
}

// Drop is how many packets were dropped for one reason.
type Drop struct {
	Reason  string `json:"reason"`
	Packets uint64 `json:"packets"`
}

// Neighbors asks who is on the links that are up; answer []Neighbor.
type Neighbors struct{}

func (Neighbors) answers([]Neighbor) {}

// Neighbor is one node at the other end of an interface.
type Neighbor struct {
	Iface string     `json:"iface"`
	Addr  netip.Addr `json:"addr"`
	UDP   string     `json:"udp"`
	// State is empty where nobody can tell: behind a TUN device or a program's link.
	State NeighborState `json:"state,omitempty"`
	Since time.Duration `json:"since_ns"` // for how long that has been its state
	Heard time.Duration `json:"heard_ns"` // how long ago it was heard last; negative: never
	In    uint64        `json:"in"`       // packets that came from it
	Out   uint64        `json:"out"`      // packets that were sent to it
	// Problem is why packets for it are not sent, or why its host name was not found.
	Problem string `json:"problem,omitempty"`
	// Line is where the file speaks of it, like A.lnx:3; empty: nowhere.
	Line string `json:"line,omitempty"`
}

// NeighborState is what is known of whether a neighbour is there.
type NeighborState string

// The states of a neighbour.
const (
	NeighborUnknown     NeighborState = "unknown"     // neither heard nor missed yet
	NeighborUp          NeighborState = "up"          // heard
	NeighborSilent      NeighborState = "silent"      // sent to for a while, and not heard since
	NeighborRefused     NeighborState = "refused"     // nobody has its UDP port
	NeighborUnreachable NeighborState = "unreachable" // what is for it cannot be sent
	NeighborUnresolved  NeighborState = "unresolved"  // its host name has no address yet
)

// SetLink takes an interface up or down, by name or by number; answer Interface.
type SetLink struct {
	Iface string `json:"iface"`
	Up    bool   `json:"up"`
}

func (SetLink) answers(Interface) {}

// Loss asks how much of what is forwarded is dropped on purpose; answer []LinkLoss.
type Loss struct {
	Iface string `json:"iface,omitempty"` // empty: every interface
}

func (Loss) answers([]LinkLoss) {}

// SetLoss has a share of the packets that are forwarded over an interface dropped, in both
// directions; answer []LinkLoss, the interfaces that it set.
type SetLoss struct {
	Percent float64 `json:"percent"`         // 0 to 100
	Iface   string  `json:"iface,omitempty"` // empty: every interface
}

func (SetLoss) answers([]LinkLoss) {}

// LinkLoss is the loss set on one interface.
type LinkLoss struct {
	Iface   string  `json:"iface"`
	Percent float64 `json:"percent"`
	Dropped uint64  `json:"dropped"` // packets that would have left by it
}

// ClearCounters sets what Interfaces and Impairments count to zero; answer Nothing.
type ClearCounters struct {
	Iface string `json:"iface,omitempty"` // empty: every interface
}

func (ClearCounters) answers(Nothing) {}
