package node

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	cryptorand "crypto/rand"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Config describes a node and its recordings.
type Config struct {
	// Network must be set.
	Network
	// LogLevel is the variable that the setting log.level sets. It is nil if there is no log.
	LogLevel *slog.LevelVar
	// Observers see packets from the start.
	Observers []*observe.Observer
	// Probe is a CSV file with a row for each ACK of every connection. If empty, there is no file.
	Probe string
	// Drop drops the process's privileges. It is nil if the process keeps them. Package operator
	// calls it once, after devices and ports are open and before it opens the files of captures and
	// of Probe.
	Drop func() error
	// Overwrite lets Probe and captures replace existing files.
	Overwrite bool
	// Seed determines random decisions, such as drops by lossyforward and by impairments. On a
	// Clock it also determines TCP's secret, and thus its initial sequence numbers and ports. Zero
	// means a random seed.
	Seed uint64
	// Offload is auto, gso, mmsg or plain, for UDP sockets. Empty means auto.
	Offload string
	// TUNOffload is auto or plain, for TUN devices. Empty means the value of Offload.
	TUNOffload string
	// Devices are the links that the program provides, by interface name. The node closes them,
	// even if Open fails.
	Devices map[string]link.Device
	// Exchange passes packets to the other nodes of this process that have it. If the receiving
	// node sleeps, the sender's goroutine runs an iteration of its loop. If Exchange is nil, all
	// packets cross the kernel. A node with a Clock cannot use an Exchange.
	Exchange *link.Exchange
	// Clock drives the node. If nil, the node uses the system's time.
	Clock *Clock
	// Tune changes the final configuration of TCP. It may be nil.
	Tune func(*tcp.Config)
	// Sampled receives each sample of the TCP connections that have a number, and Tap each packet.
	// Both may be nil. They run in the loop, or in a Read or Write that runs an iteration of the
	// loop. They must not block, must not wait for a lock that is held across Read or Write, and
	// may use nothing of the node but Wall.
	Sampled func(sid int, s *tcp.Info)
	Tap     stack.Tap

	waiter waiterKind // kind of waiter, for tests; zero: the best one on this platform

	identity uint64 // number that distinguishes the addresses of nodes in one process

	// lookup resolves names, every resolveEvery. Zero means package link's default.
	lookup       func(ctx context.Context, network, host string) (netip.Addr, error)
	resolveEvery time.Duration
}

// CloseDevices closes Devices after an error, except those that are attached to a node.
func (c *Config) CloseDevices() {
	for _, d := range c.Devices {
		_ = link.CloseUnattached(d) // the caller reports the first error
	}
}

// Network is the part of a node's configuration that a reload can replace: its interfaces, links
// and neighbors, and the settings of its stack.
type Network struct {
	// Stack configures the stack. The node completes it. An interface keeps its number for the
	// node's lifetime. An interface without a name is a deleted one. TCP buffers of size 0 are
	// tuned automatically, up to what the devices can hold.
	Stack stack.Config
	// Links are the interfaces' links, by number.
	Links []Link
	// SharedSocket is set if one UDP socket, with one address, serves all interfaces.
	SharedSocket bool
	// Neighbors are the nodes at the other ends of the links.
	Neighbors []Neighbor
	// Patience is how long a neighbor may leave packets unanswered. Zero means 15 s.
	Patience time.Duration
	// KeepRefused keeps the RIP routes through a neighbor whose UDP port is closed.
	KeepRefused bool
}

// Link is an interface's link. The zero Link is a device of Config.Devices.
type Link struct {
	UDP HostPort // local address; zero if TUN is set
	TUN *TUN     // TUN device; nil: a UDP socket
	// Impair[0] impairs sent packets, and Impair[1] received packets. Nil means no impairment.
	Impair [2]*netem.Config
}

// String returns the UDP address, or "tun:DEV".
func (l *Link) String() string {
	if l.TUN != nil {
		return "tun:" + l.TUN.Device
	}
	return l.UDP.String()
}

// HostPort is a UDP address whose host may be a name.
type HostPort struct {
	Host string
	Port uint16
}

// String returns HOST:PORT.
func (h HostPort) String() string { return net.JoinHostPort(h.Host, strconv.Itoa(int(h.Port))) }

// TUN is a TUN device, whose other end is the kernel.
type TUN struct {
	Device string         // name of the device in the kernel
	Kernel []netip.Addr   // addresses of the kernel's end, at most one of each family
	Routes []netip.Prefix // prefixes that the kernel routes to the node
	// Auto and Advertise are those of stack.Discovery.
	Auto, Advertise bool
}

// Neighbor is a node at the other end of a link.
type Neighbor struct {
	Iface string
	Addr  netip.Addr
	UDP   HostPort // UDP address to which the neighbor's packets are sent
	Line  string   // position in a file, such as "A.lnx:3"; may be empty
}

// CheckNetwork returns the error that opening a node with this network would cause.
func (n *Node) CheckNetwork(w *Network) error {
	trial := &Node{cfg: n.cfg, Time: n.Time}
	trial.cfg.Network = *w
	_, err := stack.New(n.Time.now(), trial.stackConfig())
	return err
}

// stackConfig completes the stack's configuration.
func (n *Node) stackConfig() stack.Config {
	cfg := n.cfg.Stack
	cfg.Interfaces = n.stackInterfaces()
	cfg.TCP = n.tcpConfig()
	start := n.Time.start.UTC()
	cfg.TimeOfDay = start.Sub(start.Truncate(24*time.Hour)) - 1 // the stack's time starts at 1
	seed := n.cfg.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	cfg.Rand = rand.New(rand.NewPCG(seed, seed))
	n.setRIP(&cfg, func(port uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, port)) })
	return cfg
}

// setRIP sets the random sources of RIP and RIPng, and RIP's first sequence number.
func (n *Node) setRIP(cfg *stack.Config, source func(port uint64) *rand.Rand) {
	if cfg.RIP != nil {
		r := *cfg.RIP
		r.Rand = source(rip.Port)
		if r.Dialect == rip.RIPv2 && !n.Time.stepped() {
			// RFC 4822 §2: the sequence number must be higher after a restart.
			r.Sequence = uint32(n.Time.Now().Unix())
		}
		cfg.RIP = &r
	}
	if cfg.RIPng != nil {
		r := *cfg.RIPng
		r.Rand = source(rip.PortNG)
		cfg.RIPng = &r
	}
}

// RestartRIP restarts RIP with its current configuration. Loop only.
func (n *Node) RestartRIP(now clock.Time) error {
	cfg := n.cfg.Stack
	streams := netem.Streams(n.cfg.seedFor(&netem.Config{}))
	n.setRIP(&cfg, func(port uint64) *rand.Rand {
		return streams(map[uint64]string{rip.Port: "rip", rip.PortNG: "ripng"}[port])
	})
	for _, r := range n.stack.RIPs() {
		if err := r.Restart(now, cfg); err != nil {
			return err
		}
	}
	return nil
}

// stackInterfaces returns the interfaces with their neighbors.
func (n *Node) stackInterfaces() (list []stack.Interface) {
	for i, face := range n.cfg.Stack.Interfaces {
		// On a TUN device or a program's link any address may exist. Course nodes only use UDP
		// links.
		if n.cfg.Links[i].TUN == nil && n.cfg.Devices[face.Name] == nil {
			face.Neighbors = []netip.Addr{}
		} else {
			face.DefaultMSS = true
		}
		if t := n.cfg.Links[i].TUN; t != nil {
			face.Discovery = &stack.Discovery{
				Auto: t.Auto, Advertise: t.Advertise, Secret: n.identity(i),
			}
		}
		for _, nb := range n.cfg.Neighbors {
			if nb.Iface == face.Name {
				face.Neighbors = append(face.Neighbors, nb.Addr)
			}
		}
		list = append(list, face)
	}
	return list
}

// machineID is the file with the identity of a machine, which should be kept secret.
const machineID = "/etc/machine-id"

// identity returns the secret for an interface's stable addresses (RFC 7217 §5). It depends on the
// machine and the device, or on the node.
func (n *Node) identity(i int) []byte {
	if n.cfg.Devices[n.cfg.Stack.Interfaces[i].Name] != nil { // other nodes run in this process
		return binary.BigEndian.AppendUint64(nil, n.cfg.identity)
	}
	id, err := files.Text(machineID, 1<<10)
	if err != nil || len(id) == 0 {
		name, _ := os.Hostname() // less secret, but better than nothing
		id = []byte(name)
	}
	sum := sha256.Sum256(append(id, "tidepool "+n.cfg.Links[i].String()...))
	return sum[:]
}

// tcpConfig completes the configuration of TCP.
func (n *Node) tcpConfig() tcp.Config {
	cfg := n.cfg.Stack.TCP
	if cfg.Buffers.Recv == 0 {
		most := n.Devices.receiveBuffer()
		cfg.Buffers = tcp.Buffers{
			Recv: min(firstBuffer, most), RecvMax: most, RecvNear: nearReceiveBuffer,
			Send: firstBuffer, SendMax: maxSendBuffer,
		}
	}
	random := n.Secrets("tcp")
	binary.LittleEndian.PutUint64(cfg.Secret[:8], random())
	binary.LittleEndian.PutUint64(cfg.Secret[8:], random())
	if n.cfg.Tune != nil {
		n.cfg.Tune(&cfg)
	}
	return cfg
}

// Secrets returns a source of random numbers that peers cannot predict. On a Clock the Seed
// determines them. A source is not safe for concurrent use.
func (n *Node) Secrets(part string) func() uint64 {
	if n.cfg.Seed != 0 && n.Time.Driven() {
		return netem.Streams(n.cfg.Seed)(part).Uint64
	}
	return func() uint64 {
		var b [8]byte
		_, _ = cryptorand.Read(b[:]) // never fails: instead it crashes the program
		return binary.LittleEndian.Uint64(b[:])
	}
}

// ErrConfig is wrapped by errors of Open about the stack's configuration.
var ErrConfig = errors.New("bad configuration")

const (
	// A buffer uses memory only for the data in it, so a large limit costs nothing at first.
	firstBuffer = 1 << 20
	// The largest buffers are enough for 600 MB/s with a round-trip time of 10 ms.
	maxSendBuffer    = 8 << 20
	maxReceiveBuffer = 6 << 20
	// nearReceiveBuffer fits into the CPU's cache. On a link within a machine, a window of three
	// times the size costs a fifth more CPU time per byte.
	nearReceiveBuffer = 2 << 20
	minReceiveBuffer  = 64 << 10
)

// AllAddrs returns the unspecified address with a port, which stands for all of the node's
// addresses. It is :: if the node has IPv6, because such sockets also receive IPv4, and otherwise
// 0.0.0.0.
func (n *Node) AllAddrs(port uint16) netip.AddrPort {
	six := func(f stack.Interface) bool { return len(f.IPv6) > 0 }
	if slices.ContainsFunc(n.Ifaces(), six) {
		return netip.AddrPortFrom(netip.IPv6Unspecified(), port)
	}
	return netip.AddrPortFrom(netip.IPv4Unspecified(), port)
}

// SortAddrs sorts the addresses of one host by preference (RFC 6724 §6). Try the first one first.
func (n *Node) SortAddrs(list []netip.Addr) error {
	return n.Call(func(s *stack.Stack, _ clock.Time) error {
		s.Routing().SortDestinations(list)
		return nil
	})
}
