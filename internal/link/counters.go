package link

import (
	"net/netip"
	"strconv"
)

// Drop is the reason why a device dropped a packet.
type Drop uint8

// These are the reasons. Received packets have those up to DropKernel, and DropMalformed.
const (
	// DropUnknown is a datagram from an unknown UDP address.
	DropUnknown Drop = iota
	// DropEmpty is an empty datagram.
	DropEmpty
	// DropKernel is a datagram for which the kernel's receive queue was full.
	DropKernel
	// DropNoNeighbor is a packet for a next hop that is not on the link.
	DropNoNeighbor
	// DropUnresolved is a packet for a neighbor whose name has no address yet.
	DropUnresolved
	// DropTooBig is a packet that is too long for a datagram, or for the real link.
	DropTooBig
	// DropRefused is a packet that the kernel did not send.
	DropRefused
	// DropKernelDown is a packet for a TUN device that is down.
	DropKernelDown
	// DropGone is a packet for a TUN device that was deleted.
	DropGone
	// DropMalformed is a packet from a TUN device with an invalid offload header, or with more
	// segments than fit in memory.
	DropMalformed
)

// NumDrops is the number of reasons.
const NumDrops = int(DropMalformed) + 1

// String describes the reason in a few words.
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

// Counters counts the packets of one interface since it was opened.
type Counters struct {
	RxPackets, RxBytes uint64 // packets received and delivered
	TxPackets, TxBytes uint64 // packets accepted by the kernel
	Oversize           uint64 // packets in RxPackets that were larger than the MTU
	Queued             uint64 // packets that waited in the transmit queue
	// Drops counts packets by reason. DropUnknown and DropKernel belong to the socket: they are
	// here only if it has one interface.
	Drops [NumDrops]uint64
}

// SocketCounters counts the calls of a device's socket.
type SocketCounters struct {
	Reads, Writes uint64 // calls that transferred something
	// Blocked counts the times that the kernel accepted no more packets.
	Blocked uint64
	// Absent counts ICMP errors about sent datagrams, for example that the port is closed.
	Absent uint64
	// ReadErrors counts failed reads.
	ReadErrors uint64
	// Unknown and Overflow are the socket's DropUnknown and DropKernel.
	Unknown, Overflow uint64
}

// Info is the state of a device.
type Info struct {
	// Local is the bound UDP address.
	Local netip.AddrPort
	// Offload is the current method, never OffloadAuto.
	Offload Offload
	// GRO is set if the kernel joins received datagrams.
	GRO bool
	// RecvBuffer and SendBuffer are the sizes of the kernel's queues in bytes, including overhead;
	// 0: unknown.
	RecvBuffer, SendBuffer int
	// RecvPackets is how many full packets that arrive one by one fit in RecvBuffer; 0: unknown.
	// The neighbors should have fewer in flight to the device.
	RecvPackets int
}

// NeighborInfo is the state of a neighbor.
type NeighborInfo struct {
	Addr   netip.Addr
	Others []netip.Addr
	Host   string
	Port   uint16
	// UDP is the neighbor's address; invalid: its name has no address.
	UDP netip.AddrPort
	// Heard counts packets from the neighbor, and Sent counts packets to it that the kernel
	// accepted. Refused counts ICMP errors; only Linux without OffloadPlain reports them.
	Heard, Sent, Refused uint64
	// Refusal is the last ICMP error. Nil means port unreachable if Refused is not 0.
	Refusal error
	// Problem is why the last packet to the neighbor was not sent; nil: it was sent.
	Problem error
	// Lookup is why the last lookup of the neighbor's name failed; nil: it succeeded, or Host is an
	// address.
	Lookup error
}

// These are the amounts that the kernel charges for one packet in a receive queue. On 64-bit Linux,
// a single packet of up to about 1.5 kB is charged 2304 bytes. A larger one is charged its length
// rounded up to a page, plus about 1 kB.
const (
	chargeSmall    = 2304
	chargeOverhead = 1024
	chargeRound    = 4096
	smallMTU       = 1500
)

// packetsIn estimates how many packets of mtu bytes fit in a kernel queue.
func packetsIn(queueBytes, mtu int) int {
	charge := chargeSmall
	if mtu > smallMTU {
		charge = (mtu+chargeRound-1)/chargeRound*chargeRound + chargeOverhead
	}
	return queueBytes / charge
}

// Sub subtracts an earlier state of the counters.
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
