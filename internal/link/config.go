package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// Offload is how datagrams reach the kernel.
type Offload uint8

// The ways, from the one that decides by itself to the slowest.
const (
	// OffloadAuto is the fastest way that the system has.
	OffloadAuto Offload = iota
	// OffloadGSO is a call for many trains, each cut up in the kernel
	// (UDP_SEGMENT), and the same on arrival (UDP_GRO). Linux only.
	OffloadGSO
	// OffloadMMsg is a call for many datagrams (sendmmsg). Linux only.
	OffloadMMsg
	// OffloadPlain is a call a datagram and a goroutine that reads.
	OffloadPlain
	// OffloadTUN is what a TUN device says: it has no datagrams. Nobody can
	// ask for it.
	OffloadTUN
	// OffloadTUNGSO is what a TUN device says that takes and gives whole trains.
	OffloadTUNGSO
)

// String returns the word for the way, as ParseOffload takes it.
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

// ParseOffload reads the word for a way.
func ParseOffload(word string) (Offload, error) {
	for o := OffloadAuto; o <= OffloadPlain; o++ {
		if o.String() == word {
			return o, nil
		}
	}
	return 0, fmt.Errorf("link: offload %q: must be auto, gso, mmsg or plain", word)
}

// Config describes one UDP socket and the interfaces behind it.
type Config struct {
	// Host and Port are the UDP address to bind. Host may be a name; empty is
	// every address. Port 0 has the system choose.
	Host string
	Port uint16
	// Interfaces are those that the socket serves: one, or all of a node's in
	// the old grammars. There must be one.
	Interfaces []Interface
	// Offload is the way to the kernel; 0: OffloadAuto.
	Offload Offload
	// RecvBuffer and SendBuffer are what is asked of the kernel for its queues,
	// bytes; 0: 8 MiB. It may give less: see Info.
	RecvBuffer, SendBuffer int
	// QueuePackets and QueueBytes bound the out queue, which is used only
	// while the kernel takes nothing; 0: 2048 packets, 4 MiB.
	QueuePackets, QueueBytes int
	// AcceptUnknown delivers what comes from a UDP address that is nobody's
	// when the socket serves a single interface. False: dropped and counted.
	AcceptUnknown bool
	// ResolveEvery is how often the names among the neighbours' addresses are
	// looked up again; 0: 30 s. Names that failed are tried sooner.
	ResolveEvery time.Duration
	// Lookup finds a name's IPv4 address; nil: the system's resolver.
	Lookup func(ctx context.Context, host string) (netip.Addr, error)
}

// Interface is one virtual interface of a device.
type Interface struct {
	// Name is for messages.
	Name string
	// ID is the node's number for it: Iface of frames and trains.
	ID int
	// Local is its own virtual address. It matters only where two links of one
	// socket lead to one peer.
	Local [4]byte
	// MTU is the largest packet; 0: 1400. It is for the counters: what to send
	// is cut to size before it comes here.
	MTU int
	// Neighbors are the nodes on this link.
	Neighbors []Neighbor
}

// Neighbor is a node on a link: where packets for its virtual address go.
type Neighbor struct {
	Addr [4]byte
	// Host is an IPv4 address or a name. A name that does not resolve yet is
	// no error: what is sent there until it does is dropped and counted.
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
	setDefault(&c.RecvBuffer, defaultSocketBuffer)
	setDefault(&c.SendBuffer, defaultSocketBuffer)
	setDefault(&c.QueuePackets, defaultQueuePackets)
	setDefault(&c.QueueBytes, defaultQueueBytes)
	setDefault(&c.ResolveEvery, defaultResolveEvery)
	c.Interfaces = append([]Interface(nil), c.Interfaces...)
	for i := range c.Interfaces {
		setDefault(&c.Interfaces[i].MTU, defaultMTU)
	}
	if c.Lookup == nil {
		c.Lookup = lookup
	}
	return c
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// maxInterfaceID bounds the table of interfaces by number.
const maxInterfaceID = 1 << 16

func (c Config) validate() error {
	if len(c.Interfaces) == 0 {
		return errors.New("link: a socket without an interface")
	}
	if c.Offload > OffloadPlain {
		return fmt.Errorf("link: unknown %v", c.Offload)
	}
	if c.RecvBuffer < 0 || c.SendBuffer < 0 || c.QueuePackets < 0 || c.QueueBytes < 0 ||
		c.ResolveEvery < 0 {
		return errors.New("link: a negative size or time")
	}
	seen := map[int]string{}
	for _, f := range c.Interfaces {
		if f.ID < 0 || f.ID > maxInterfaceID {
			return fmt.Errorf("link: interface %s: number %d", f.Name, f.ID)
		}
		if other, ok := seen[f.ID]; ok {
			return fmt.Errorf("link: interfaces %s and %s both have number %d", other, f.Name, f.ID)
		}
		seen[f.ID] = f.Name
	}
	return nil
}

// lookup asks the system's resolver.
func lookup(ctx context.Context, host string) (netip.Addr, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return netip.Addr{}, err
	}
	return addrs[0].Unmap(), nil
}
