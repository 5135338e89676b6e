package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Offload is how datagrams are passed to the kernel.
type Offload uint8

// These are the methods.
const (
	// OffloadAuto is the fastest method of the system.
	OffloadAuto Offload = iota
	// OffloadGSO passes several trains in a call. The kernel segments sent trains (UDP_SEGMENT) and
	// joins received ones (UDP_GRO). Linux only.
	OffloadGSO
	// OffloadMMsg passes several datagrams in a call (sendmmsg). Linux only.
	OffloadMMsg
	// OffloadPlain passes one datagram in a call and receives in a goroutine.
	OffloadPlain
	// OffloadTUN is the method of a TUN device. It cannot be configured.
	OffloadTUN
	// OffloadTUNGSO is the method of a TUN device that passes whole trains.
	OffloadTUNGSO
)

// String returns the keyword of the method. ParseOffload parses it.
func (o Offload) String() string {
	switch o {
	case OffloadAuto:
		return "auto"
	case OffloadGSO:
		return "gso"
	case OffloadMMsg:
		return "mmsg"
	case OffloadPlain:
		return "plain"
	case OffloadTUN:
		return "tun"
	case OffloadTUNGSO:
		return "tun+gso"
	}
	return "offload " + strconv.Itoa(int(o))
}

// ParseOffload parses the keyword of a method.
func ParseOffload(word string) (Offload, error) {
	for o := OffloadAuto; o <= OffloadPlain; o++ {
		if o.String() == word {
			return o, nil
		}
	}
	return 0, fmt.Errorf("link: offload %q: must be auto, gso, mmsg or plain", word)
}

// Config configures one UDP socket and its interfaces.
type Config struct {
	// Host and Port are the UDP address to bind. Host may be a name. Empty means every IPv4
	// address, and "::" every address of both families. Port 0 lets the system choose.
	Host string
	Port uint16
	// Interfaces are the interfaces of the socket: one, or all interfaces of a node whose file has
	// the old syntax. There must be at least one.
	Interfaces []Interface
	// Offload is how datagrams are passed to the kernel; 0: OffloadAuto.
	Offload Offload
	// RecvBuffer and SendBuffer are the requested sizes of the kernel's queues in bytes; 0: 8 MiB.
	// The kernel may grant less: see Info.
	RecvBuffer, SendBuffer int
	// QueuePackets and QueueBytes limit the transmit queue, which is used only while the kernel
	// accepts no packets; 0: 2048 packets, 4 MiB.
	QueuePackets, QueueBytes int
	// Exchange carries packets between its devices; nil: the kernel carries all packets.
	Exchange *Exchange
	// ResolveEvery is the time between two lookups of the neighbors' host names; 0: 30 s. After a
	// failure it is shorter.
	ResolveEvery time.Duration
	// Lookup returns an address of a name; nil: the system's resolver. The network is "ip4", "ip6",
	// or "ip" for both.
	Lookup func(ctx context.Context, network, host string) (netip.Addr, error)

	network string // network of the bound address, as returned by networkOf; empty: "ip4"
}

// Interface is one virtual interface of a device.
type Interface struct {
	// Name is the name of the interface in messages.
	Name string
	// ID is the node's number of the interface, which frames and trains contain as Iface.
	ID int
	// Local is the interface's virtual address, and Others are further ones, of both families. A
	// socket uses them only if two of its links lead to the same peer.
	Local  netip.Addr
	Others []netip.Addr
	// MTU is the largest packet; 0: 1400. The device only counts larger packets, because the node
	// fragments before it sends.
	MTU int
	// Neighbors are the nodes on this link.
	Neighbors []Neighbor
}

// Neighbor is a node on a link, with the UDP address for packets to its virtual addresses, of both
// families.
type Neighbor struct {
	Addr   netip.Addr
	Others []netip.Addr
	// Host is an address or a name. Packets for a name that does not resolve yet are dropped
	// and counted.
	Host string
	Port uint16
}

const (
	defaultMTU          = 1400
	defaultSocketBuffer = 8 << 20
	defaultQueuePackets = 2048
	defaultQueueBytes   = 4 << 20
	defaultResolveEvery = 30 * time.Second
)

func (c Config) withDefaults() Config {
	c.RecvBuffer = cmp.Or(c.RecvBuffer, defaultSocketBuffer)
	c.SendBuffer = cmp.Or(c.SendBuffer, defaultSocketBuffer)
	c.QueuePackets = cmp.Or(c.QueuePackets, defaultQueuePackets)
	c.QueueBytes = cmp.Or(c.QueueBytes, defaultQueueBytes)
	c.ResolveEvery = cmp.Or(c.ResolveEvery, defaultResolveEvery)
	c.Interfaces = append([]Interface(nil), c.Interfaces...)
	for i := range c.Interfaces {
		c.Interfaces[i].MTU = cmp.Or(c.Interfaces[i].MTU, defaultMTU)
	}
	c.network = cmp.Or(c.network, "ip4")
	if c.Lookup == nil {
		c.Lookup = lookup
	}
	return c
}

// maxInterfaceID is the maximum number of an interface.
const maxInterfaceID = 1 << 16

func (c Config) validate() error {
	if len(c.Interfaces) == 0 {
		return errors.New("link: the socket has no interface")
	}
	if c.Offload > OffloadPlain {
		return fmt.Errorf("link: unknown %v", c.Offload)
	}
	if c.RecvBuffer < 0 || c.SendBuffer < 0 || c.QueuePackets < 0 || c.QueueBytes < 0 ||
		c.ResolveEvery < 0 {
		return errors.New("link: sizes and times must not be negative")
	}
	seen := map[int]string{}
	for _, f := range c.Interfaces {
		if f.ID < 0 || f.ID > maxInterfaceID {
			return fmt.Errorf("link: interface %s: number %d: must be 0 to %d", f.Name, f.ID,
				maxInterfaceID)
		}
		if other, ok := seen[f.ID]; ok {
			return fmt.Errorf("link: interfaces %s and %s both have number %d", other, f.Name, f.ID)
		}
		seen[f.ID] = f.Name
	}
	return nil
}

// families returns an error if a neighbor's address cannot be reached from the socket.
func (c Config) families() error {
	for _, f := range c.Interfaces {
		for _, n := range f.Neighbors {
			if a, ok := parseLiteral(n.Host); ok && !fits(c.network, a) {
				return fmt.Errorf("link: interface %s: neighbor %v at %s: %w, as %s is: use one "+
					"family on a link", f.Name, n.Addr, net.JoinHostPort(n.Host,
					strconv.Itoa(int(n.Port))), familyError(c.network), cmp.Or(c.Host, "0.0.0.0"))
			}
		}
	}
	return nil
}

// lookup asks the system's resolver. It prefers IPv4, because hosts without IPv6 may have names
// with IPv6 addresses.
func lookup(ctx context.Context, network, host string) (netip.Addr, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	if err != nil {
		return netip.Addr{}, err
	}
	return addrs[max(0, slices.IndexFunc(addrs, func(a netip.Addr) bool {
		return a.Unmap().Is4()
	}))].Unmap(), nil
}
