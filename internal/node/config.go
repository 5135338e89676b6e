package node

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"time"

	cryptorand "crypto/rand"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Config says which node to open and what to record of it.
type Config struct {
	// LNX describes the node; required.
	LNX *lnx.Config
	// Reread reads the file of LNX again, for reloads; nil: it is of none.
	Reread func() (*lnx.Config, error)
	// LogLevel is what the setting log.level turns; nil: there is no log.
	LogLevel *slog.LevelVar
	// Observers are shown packets from the start.
	Observers []*observe.Observer
	// Pcap is a file to capture every packet to from the start; empty: none. It is package
	// operator that opens it.
	Pcap string
	// Snaplen is how many bytes of a packet the capture keeps; 0: all.
	Snaplen int
	// Probe is a file for a CSV row an ACK of every connection; empty: none.
	Probe string
	// Drop gives up the privileges of the process; nil: it keeps them. Package operator calls it
	// once, when devices and ports are open and the files of Pcap and Probe are not.
	Drop func() error
	// Overwrite lets Pcap and Probe replace files that are there.
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
	// Tune changes what LNX makes of TCP; nil: nothing.
	Tune func(*TCPConfig)
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

// Rehearse makes the stack that a new node would have of a file, and forgets it: what that refuses
// is told before anything changes.
func (n *Node) Rehearse(c *lnx.Config) error {
	trial := &Node{cfg: n.cfg, start: n.start}
	trial.cfg.LNX = c
	_, err := stack.New(n.now(), trial.stackConfig())
	return err
}

// stackConfig translates the file into the stack's terms.
func (n *Node) stackConfig() stack.Config {
	c := n.cfg.LNX
	cfg := stack.Config{Forwarding: c.Forwarding}
	if c.TCP.Profile == "004" {
		cfg.FirstSocket = 3 // founding document 004 §6.2: 0 to 2 are the standard streams
	}
	cfg.Interfaces = n.stackFaces()
	if c.Routing != lnx.RoutingNone {
		for _, r := range c.Routes {
			cfg.Routes = append(cfg.Routes, stack.Route{
				Prefix: r.Prefix, Via: r.Via, Metric: r.Metric,
				Kind: RouteKinds[r.Kind],
			})
		}
	}
	cfg.TCP = n.tcpConfig()
	cfg.Knobs = InternetKnobs(c)
	cfg.TimeOfDay = n.start.UTC().Sub(n.start.UTC().Truncate(24*time.Hour)) - 1 // now begins at 1
	seed := n.cfg.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	cfg.Rand = rand.New(rand.NewPCG(seed, seed))
	n.setRIP(&cfg, rand.New(rand.NewPCG(seed, rip.Port)))
	return cfg
}

// stackFaces are the interfaces by number; one without an address is no more.
func (n *Node) stackFaces() (list []stack.Interface) {
	c := n.cfg.LNX
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		face := stack.Interface{Name: f.Name, Addr: f.Addr, MTU: f.MTU}
		// Behind a TUN device the kernel knows who is there, behind a program's the program. Course
		// nodes are on UDP links only.
		if f.Tun == nil && n.cfg.Devices[f.Name] == nil {
			face.Neighbors = []netip.Addr{}
		} else {
			face.DefaultMSS = true
		}
		for _, nb := range c.Neighbors {
			if nb.Iface == f.Name {
				face.Neighbors = append(face.Neighbors, nb.Addr)
			}
		}
		list = append(list, face)
	}
	return list
}

func (n *Node) tcpConfig() tcp.Config {
	c, most := n.cfg.LNX, n.Devices.receiveBuffer()
	cfg := tcp.Config{
		Knobs: tcp.Knobs{
			Recovery: tcp.Recovery{
				RTOMin: c.TCP.RTOMin, RTOMax: c.TCP.RTOMax,
				// RFC 6298 §2.1's first guess of 1 s is for a wide-area network; a file that
				// sets the minimum to a millisecond says that this is none.
				RTOInitial: max(c.TCP.RTOMin, min(100*c.TCP.RTOMin, c.TCP.RTOMax, time.Second)),
			},
			OptionsOff: c.TCP.OptionsOff, NoResets: c.TCP.NoResets,
		},
		Buffers: tcp.Buffers{
			Recv: min(firstBuffer, most), RecvMax: most,
			RecvNear: nearReceiveBuffer,
			Send:     firstBuffer, SendMax: maxSendBuffer,
		},
	}
	if c.TCP.Profile == "004" {
		// Founding document 004 §7. It counts a SYN or FIN that is sent three
		// times, 3 s apart, and says nothing of an idle limit.
		cfg.Recovery.RTOInitial = 30 * time.Millisecond
		cfg.Retries.Syn, cfg.Retries.SynTimeout = 2, 3*time.Second
		cfg.Retries.Fin, cfg.Retries.FinTimeout = 2, 3*time.Second
		cfg.Retries.Data = 20
		cfg.MSL = 2 * time.Minute
		cfg.Buffers.Recv, cfg.Buffers.RecvMax = 65535, 65535
		cfg.Buffers.Send, cfg.Buffers.SendMax = 65535, 65535
	}
	_, _ = cryptorand.Read(cfg.Secret[:]) // never fails: it ends the program instead
	if n.cfg.Tune != nil {
		n.cfg.Tune(&cfg)
	}
	return cfg
}

// InternetKnobs is how a file sets them.
func InternetKnobs(c *lnx.Config) (k stack.Knobs) {
	k.ICMP = stack.ICMPKnobs{
		Errors:   icmp.Limit{Rate: c.ICMP.Rate, Burst: c.ICMP.Burst},
		NoErrors: c.ICMP.NoErrors, NoEcho: c.ICMP.NoEcho, NoTimestamp: c.ICMP.NoTimestamp,
		EchoBroadcast: c.ICMP.EchoBroadcast,
	}
	k.IP.DirectedBroadcast = c.IP.DirectedBroadcast
	k.IP.Reassembly.Timeout = c.IP.ReassemblyTimeout
	k.IP.Reassembly.MaxBytes = c.IP.ReassemblyBytes
	k.IP.ReversePath, _ = stack.ParseReversePath(c.IP.ReversePath) // lnx knows the same modes
	return k
}

// ErrConfig marks the errors of Open that are about what Config says of the stack.
var ErrConfig = errors.New("bad configuration")

// The bounds of the transport's configuration.
const (
	MinBuffer        = tcp.MinBuffer
	MaxBuffer        = tcp.MaxBuffer
	MaxRetries       = tcp.MaxRetries
	MaxInitialWindow = tcp.MaxInitialWindow
	MaxDelayedAck    = tcp.MaxDelayedAck
)

// TCPConfig is the transport's configuration.
type TCPConfig = tcp.Config

// ParseECN returns the mode of explicit congestion notification with that name;
// the empty name is the default's.
func ParseECN(name string) (tcp.ECNMode, bool) {
	if name == "" {
		return tcp.ECNPassive, true
	}
	return tcp.ParseECNMode(name)
}

// ParseSynCookies returns the mode of SYN cookies with that name; the empty name
// is the default's.
func ParseSynCookies(name string) (tcp.CookieMode, bool) {
	if name == "" {
		return tcp.CookiesAuto, true
	}
	return tcp.ParseCookieMode(name)
}

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
