package node

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"time"

	cryptorand "crypto/rand"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Config says which node to open and what to record of it.
type Config struct {
	// Network is what the node is to others; required.
	Network
	// LogLevel is what the setting log.level turns; nil: there is no log.
	LogLevel *slog.LevelVar
	// Observers are shown packets from the start.
	Observers []*observe.Observer
	// Probe is a file for a CSV row an ACK of every connection; empty: none.
	Probe string
	// Drop gives up the privileges of the process; nil: it keeps them. Package operator calls it
	// once, when devices and ports are open and the files of captures and Probe are not.
	Drop func() error
	// Overwrite lets Probe, and package operator's captures, replace files that are there.
	Overwrite bool
	// Seed makes the packets that lossyforward drops the same in every run;
	// 0: different ones each time.
	Seed uint64
	// Offload is how datagrams reach the kernel: auto, gso, mmsg or plain;
	// empty: auto.
	Offload string
	// TUNOffload is the same of TUN devices, which have auto and plain; empty: Offload.
	TUNOffload string
	// Devices are the links of the interfaces that have no UDP address, by the
	// interface's name. The node closes them, also when Open fails.
	Devices map[string]link.Device
	// Clock drives the node; nil: the system's time does.
	Clock *Clock
	// Tune changes the configuration of TCP when it is complete; nil: nothing.
	Tune func(*tcp.Config)
	// Sampled sees each sample of each TCP connection, whose socket has a number, and Tap each
	// packet; nil: nobody. The loop calls them, or a Write or Read that has its turn: they are
	// quick, wait for no lock that a caller of these may hold, and call nothing of the node but
	// Wall.
	Sampled func(sid int, s *tcp.Info)
	Tap     stack.Tap

	waiter waiterKind // tests choose; zero: the platform's best

	// How host names are looked up, and how often; zero: as link does.
	lookup       func(ctx context.Context, host string) (netip.Addr, error)
	resolveEvery time.Duration
}

// CloseDevices closes Devices after an error, except those that are attached to a node.
func (c *Config) CloseDevices() {
	for _, d := range c.Devices {
		_ = link.CloseUnattached(d) // report the first error
	}
}

// Network is what a node is to others: its interfaces and what they stand on, its neighbors, and
// how its stack behaves. A reload replaces it.
type Network struct {
	// Stack configures the stack, but for what only a running node knows. An interface keeps its
	// number while the node lives; one without a name is no more. Buffers of TCP that are zero tune
	// themselves, within what the devices hold.
	Stack stack.Config
	// Links are what the interfaces stand on, by number.
	Links []Link
	// SharedSocket is set when one UDP socket serves all interfaces, which then have one address.
	SharedSocket bool
	// Neighbors are the nodes at the other ends of the links.
	Neighbors []Neighbor
	// Patience is for how long a neighbor may leave what was sent to it unanswered; 0: 15 s.
	Patience time.Duration
	// KeepRefused has RIP keep the routes by a neighbor whose UDP port is closed.
	KeepRefused bool
}

// Link is what an interface stands on; the zero Link is a device of Config.Devices.
type Link struct {
	UDP HostPort // to bind; zero if TUN is set
	TUN *TUN     // nil: a UDP socket
	// Impair is what the link does to packets that go, and to those that come; nil: nothing.
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
func (h HostPort) String() string { return h.Host + ":" + strconv.Itoa(int(h.Port)) }

// TUN is a TUN device that leads to the kernel.
type TUN struct {
	Device string         // the kernel's name for it
	Kernel netip.Addr     // of the kernel's end; invalid: it is left alone
	Routes []netip.Prefix // that the kernel is told to reach by the node
}

// Neighbor is a node at the other end of a link.
type Neighbor struct {
	Iface string
	Addr  netip.Addr
	UDP   HostPort // where its packets are sent
	Line  string   // where a file names it, such as "A.lnx:3"; empty: it is of no file
}

// Rehearse makes the stack that a new node would have, and forgets it: its errors are known before
// anything changes.
func (n *Node) Rehearse(w *Network) error {
	trial := &Node{cfg: n.cfg, Time: n.Time}
	trial.cfg.Network = *w
	_, err := stack.New(n.Time.now(), trial.stackConfig())
	return err
}

// stackConfig completes the stack's configuration.
func (n *Node) stackConfig() stack.Config {
	cfg := n.cfg.Stack
	cfg.Interfaces = n.stackFaces()
	cfg.TCP = n.tcpConfig()
	start := n.Time.start.UTC()
	cfg.TimeOfDay = start.Sub(start.Truncate(24*time.Hour)) - 1 // now begins at 1
	seed := n.cfg.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	cfg.Rand = rand.New(rand.NewPCG(seed, seed))
	n.setRIP(&cfg, rand.New(rand.NewPCG(seed, rip.Port)))
	return cfg
}

// setRIP gives RIP its random source, and its first sequence number.
func (n *Node) setRIP(cfg *stack.Config, rng *rand.Rand) {
	if cfg.RIP == nil {
		return
	}
	r := *cfg.RIP
	r.Rand = rng
	if r.Dialect == rip.RIPv2 && !n.Time.Driven() {
		// Further on after a restart than before it: RFC 4822 §2.
		r.Sequence = uint32(time.Now().Unix())
	}
	cfg.RIP = &r
}

// RestartRIP goes on with RIP as the configuration has it now. The loop's.
func (n *Node) RestartRIP(now clock.Time) error {
	cfg := n.cfg.Stack
	n.setRIP(&cfg, netem.Streams(n.cfg.seedFor(&netem.Config{}))("rip"))
	return n.stack.RIP().Restart(now, cfg)
}

// stackFaces are the interfaces with their neighbors.
func (n *Node) stackFaces() (list []stack.Interface) {
	for i, face := range n.cfg.Stack.Interfaces {
		// Behind a TUN device the kernel knows who is there, behind a program's the program. Course
		// nodes are on UDP links only.
		if n.cfg.Links[i].TUN == nil && n.cfg.Devices[face.Name] == nil {
			face.Neighbors = []netip.Addr{}
		} else {
			face.DefaultMSS = true
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

// tcpConfig completes TCP's configuration.
func (n *Node) tcpConfig() tcp.Config {
	cfg := n.cfg.Stack.TCP
	if cfg.Buffers.Recv == 0 {
		most := n.Devices.receiveBuffer()
		cfg.Buffers = tcp.Buffers{
			Recv: min(firstBuffer, most), RecvMax: most, RecvNear: nearReceiveBuffer,
			Send: firstBuffer, SendMax: maxSendBuffer,
		}
	}
	_, _ = cryptorand.Read(cfg.Secret[:]) // never fails: it ends the program instead
	if n.cfg.Tune != nil {
		n.cfg.Tune(&cfg)
	}
	return cfg
}

// ErrConfig marks the errors of Open that are about what Config says of the stack.
var ErrConfig = errors.New("bad configuration")

const (
	// Memory comes and goes with what is in a buffer, so a large one costs nothing at first.
	firstBuffer = 1 << 20
	// The largest are for 600 MB/s at a round trip of 10 ms.
	maxSendBuffer    = 8 << 20
	maxReceiveBuffer = 6 << 20
	// nearReceiveBuffer stays in the processor's cache: on a link within a machine a window
	// three times as large costs a fifth more CPU a byte.
	nearReceiveBuffer = 2 << 20
	minReceiveBuffer  = 64 << 10
)
