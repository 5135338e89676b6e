package link

import (
	"net/netip"
	"strconv"
)

// Drop is why a packet went no further than the device.
type Drop uint8

// The reasons. Those up to DropKernel are of what arrives.
const (
	// DropUnknown is a datagram from a UDP address that is no neighbour's.
	DropUnknown Drop = iota
	// DropEmpty is a datagram without a byte in it.
	DropEmpty
	// DropKernel is a datagram that the kernel's receive queue had no room for.
	DropKernel
	// DropNoNeighbor is a packet for a next hop that is not on the link.
	DropNoNeighbor
	// DropUnresolved is a packet for a neighbour whose name has no address yet.
	DropUnresolved
	// DropTooBig is a packet that does not fit into a datagram, or into the
	// real link beneath.
	DropTooBig
	// DropRefused is a packet that the kernel would not send.
	DropRefused
	// DropKernelDown is a packet for a TUN device that is not up.
	DropKernelDown
	// DropGone is a packet for a TUN device that was deleted.
	DropGone
	// DropMalformed is what came from a TUN device with a header that makes no
	// sense, or was to be cut into more segments than there is memory for.
	DropMalformed
)

// NumDrops is the number of reasons.
const NumDrops = int(DropMalformed) + 1

// String returns the reason in a few words.
func (d Drop) String() string {
	switch d {
	case DropUnknown:
		return "unknown neighbor"
	case DropEmpty:
		return "empty datagram"
	case DropKernel:
		return "kernel receive queue full"
	case DropNoNeighbor:
		return "no such neighbor on the link"
	case DropUnresolved:
		return "neighbor name not resolved"
	case DropTooBig:
		return "too big for the device"
	case DropRefused:
		return "refused by the kernel"
	case DropKernelDown:
		return "tun device not up"
	case DropGone:
		return "tun device deleted"
	case DropMalformed:
		return "bad offload header from the kernel"
	}
	return "drop " + strconv.Itoa(int(d))
}

// Counters count what crossed one interface since it was opened.
type Counters struct {
	RxPackets, RxBytes uint64 // delivered
	TxPackets, TxBytes uint64 // taken by the kernel
	Oversize           uint64 // among RxPackets: larger than the MTU
	Queued             uint64 // packets that had to wait in the out queue
	// Drops counts packets by reason. DropUnknown and DropKernel belong to a
	// socket: they are here only where it serves one interface.
	Drops [NumDrops]uint64
}

// SocketCounters count what happened at a device's socket.
type SocketCounters struct {
	Reads, Writes uint64 // calls that moved something
	// Blocked counts the times that the kernel would take no more.
	Blocked uint64
	// Absent counts messages that nobody was there for a datagram of ours.
	Absent uint64
	// ReadErrors counts failed reads.
	ReadErrors uint64
	// Unknown and Overflow are DropUnknown and DropKernel of the socket.
	Unknown, Overflow uint64
}

// Info is what a device turned out to be.
type Info struct {
	// Local is the UDP address that is bound.
	Local netip.AddrPort
	// Offload is the way in use now; never OffloadAuto.
	Offload Offload
	// GRO is set when the kernel joins arriving datagrams.
	GRO bool
	// RecvBuffer and SendBuffer are the kernel's queues, in bytes as it counts
	// them, overhead included; 0: unknown.
	RecvBuffer, SendBuffer int
	// RecvPackets is how many full packets, arriving one by one, RecvBuffer
	// holds at least; 0: unknown. What neighbours may have in flight towards
	// the device together should stay below.
	RecvPackets int
}

// NeighborInfo is what a device knows of a neighbour.
type NeighborInfo struct {
	Addr [4]byte
	Host string
	Port uint16
	// UDP is where packets go; invalid while the name has no address.
	UDP netip.AddrPort
	// Heard and Sent are packets that came from it and that the kernel took for it.
	// Refused is how often the network sent word that one did not arrive, which is
	// told on Linux with batches only, and elsewhere not.
	Heard, Sent, Refused uint64
	// Refusal is what it said the last time; nil: that nobody has the port.
	Refusal error
	// Problem is why the last packet for it was not sent; nil: it was.
	Problem error
	// Lookup is why its name was not found the last time; nil: it was, or is none.
	Lookup error
}

// bookkeeping of one packet in the kernel's queue: on a 64-bit Linux a packet of
// up to about 1.5 kB that came alone is charged 2304 bytes, and larger ones
// their length, rounded up to a page, and some 1 kB.
const (
	chargeSmall    = 2304
	chargeOverhead = 1024
	chargeRound    = 4096
	smallMTU       = 1500
)

// packetsIn estimates how many packets of mtu bytes a kernel queue holds.
func packetsIn(queueBytes, mtu int) int {
	charge := chargeSmall
	if mtu > smallMTU {
		charge = (mtu+chargeRound-1)/chargeRound*chargeRound + chargeOverhead
	}
	return queueBytes / charge
}

// Sub takes off what had been counted before.
func (c *Counters) Sub(before *Counters) {
	c.RxPackets -= before.RxPackets
	c.RxBytes -= before.RxBytes
	c.TxPackets -= before.TxPackets
	c.TxBytes -= before.TxBytes
	c.Oversize -= before.Oversize
	c.Queued -= before.Queued
	for reason := range c.Drops {
		c.Drops[reason] -= before.Drops[reason]
	}
}
