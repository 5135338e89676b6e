// Package playground runs a network in virtual time for the page of docs/PLAYGROUND.md: its hosts
// and routers with their shells, files and HTTP API. playground/wasm is the program that a browser
// runs. The tests run the same package natively.
//
// A World uses the time of package time, which must be virtual: it stands still while a goroutine
// runs, and jumps to the next timer when no goroutine runs. In native programs this is the time of
// a testing/synctest bubble. In the browser the host of the WebAssembly program provides such a
// clock (site/wasi.js).
//
// The seed and the inputs with their times determine every packet. State.Hash shows that.
package playground

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/topology"
)

// Config describes a world.
type Config struct {
	// Name is the network's name. Errors contain it.
	Name string `json:"name"`
	// Network is the text of a .net file, or of several .lnx files: see Check.
	Network string `json:"network"`
	// Seed determines all random choices.
	Seed uint64 `json:"seed"`
	// Files is a directory. Each node has its files in a folder below it that has the node's name.
	Files string `json:"files"`
	// Joined means that the network is one node of another network: the other ends of its links are
	// elsewhere. The World calls Send with packets for them, which are valid only during the call.
	Joined bool                           `json:"joined,omitempty"`
	Send   func(iface int, packet []byte) `json:"-"`
	// Print gets the output of the nodes' shells. Nil: the output is discarded.
	Print func(node, text string) `json:"-"`
}

// World is a running network. Only one goroutine may call its methods.
type World struct {
	cfg    Config
	clock  node.Clock
	began  time.Time
	hosts  []*host
	server *api.Server
	files  *files.Folder
	ends   context.Context //nolint:containedctx // lasts as long as the world
	finish context.CancelFunc
	stop   func()            // stops the clock
	links  map[int]*link.End // the other ends of a joined network's interfaces
	inputs uint64
	busy   sync.WaitGroup

	requests map[int]context.CancelFunc // running input requests, by number
	mu       sync.Mutex                 // guards requests
}

// New starts a network. The caller may use the world before routing protocols have converged.
func New(cfg Config) (*World, error) {
	configs, err := parse(cfg.Name, cfg.Network, cfg.Joined)
	if err != nil {
		return nil, err
	}
	w := &World{
		cfg: cfg, began: time.Now(), requests: map[int]context.CancelFunc{},
	}
	w.ends, w.finish = context.WithCancel(context.Background())
	w.stop = w.clock.Follow(cfg.Seed)
	if err := w.open(configs); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *World) open(configs []*lnx.Config) (err error) {
	graph := topology.From(w.cfg.Name, configs)
	devices := make([]map[string]link.Device, len(configs))
	for i, c := range configs {
		devices[i] = map[string]link.Device{}
		for k := range c.Interfaces {
			c.Interfaces[k].UDP = lnx.HostPort{}
		}
		for k := range c.Neighbors {
			c.Neighbors[k].UDP = lnx.HostPort{}
		}
	}
	for _, e := range graph.Links { // parse has checked the number of ends
		a, b := link.Pipe(0)
		devices[e.Ends[0].Node][e.Ends[0].Iface] = a
		if len(e.Ends) == 1 {
			w.join(configs[0], e.Ends[0].Iface, b)
			continue
		}
		devices[e.Ends[1].Node][e.Ends[1].Iface] = b
	}
	operators := map[string]control.Operator{}
	for i, c := range configs {
		h, err := w.start(c, devices[i])
		if err != nil {
			return fmt.Errorf("node %s: %w", c.Name, err)
		}
		w.hosts = append(w.hosts, h)
		operators[c.Name] = h.node
	}
	if w.files, err = files.OpenFolder(w.cfg.Files); err != nil {
		return err
	}
	w.server = api.New(api.Config{
		Nodes: operators, Version: "playground", Shape: api.ShapeOf(graph), Files: w.files,
	})
	for _, h := range w.hosts {
		h.shell(w)
	}
	return nil
}

// refuse makes a node refuse requests that open a port forward. A port forward would need sockets
// of the program, and nothing can reach those in a browser.
func refuse[R control.Request[control.Door]](h control.Handlers, name string) {
	before(h, func(context.Context, R) error {
		return fmt.Errorf("%s: %w in this page: a browser has no real sockets",
			name, control.ErrUnsupported)
	})
}

// timers sets the TCP timers of RFC 6298 §2, with Linux's minimum. The defaults of .lnx files are
// for networks on one machine.
func timers(c *tcp.Config) {
	c.Recovery.RTOMin = 200 * time.Millisecond
	c.Recovery.RTOInitial, c.Recovery.RTOMax = time.Second, time.Minute
}

func (w *World) start(c *lnx.Config, devices map[string]link.Device) (*host, error) {
	h := &host{
		name: c.Name, lines: make(chan string, maxTyped), sent: newSum(len(c.Interfaces)),
		scripts: scripts{}, out: func(text string) {
			if w.cfg.Print != nil {
				w.cfg.Print(c.Name, text)
			}
		},
	}
	dir := filepath.Join(w.cfg.Files, c.Name)
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		h.files, err = files.OpenFolder(dir)
	}
	if err != nil {
		return nil, err
	}
	seed := fnv.New64a()
	_, _ = io.WriteString(seed, c.Name) // never fails
	h.node, err = operator.Open(operator.Config{LNX: c, Node: node.Config{
		Seed:    max(1, seed.Sum64()^w.cfg.Seed*0x9e3779b97f4a7c15),
		Devices: devices, Clock: &w.clock, Tune: func(c *tcp.Config) {
			timers(c)
			c.Algorithms = h.scripts
		},
		Tap: node.Sent(func(iface int, pieces [][]byte) {
			h.sent.add(iface, w.clock.Now().UnixNano(), pieces)
		}),
	}})
	if err != nil {
		_ = h.files.Close() // report only the first error
		return nil, err
	}
	refuse[control.Publish](h.node.Handlers, "publish")
	refuse[control.Expose](h.node.Handlers, "expose")
	refuse[control.Splice](h.node.Handlers, "splice")
	refuse[control.Socks](h.node.Handlers, "socks")
	h.takeScripts(w.Now)
	return h, h.node.Node.Call(func(s *stack.Stack, _ clock.Time) error {
		h.node.Node.Follow(func() bool {
			if s.TCP().Counters().Retransmits > 0 {
				h.retransmitted.Store(int64(w.clock.Now().Sub(w.began)))
			}
			return h.retransmitted.Load() > 0
		})
		return nil
	})
}

// Now returns the virtual time since the start.
func (w *World) Now() time.Duration { return time.Since(w.began) }

// Advance runs the network until the given time since the start.
func (w *World) Advance(to time.Duration) { time.Sleep(to - w.Now()) }

// Settle waits until no goroutine has anything left to do at this instant. Time stands still until
// then.
func (w *World) Settle() { time.Sleep(time.Nanosecond) }

// State summarizes what a world has done so far.
type State struct {
	At      time.Duration `json:"at"`
	Packets uint64        `json:"packets"` // packets sent by all interfaces
	Bytes   uint64        `json:"bytes"`
	Hash    string        `json:"hash"`
	// Retransmits and Timeouts are the sums of all nodes' TCP.
	Retransmits uint64 `json:"retransmits"`
	Timeouts    uint64 `json:"timeouts"`
	// FirstRetransmit is the time of the first retransmission of any node. 0: there was none.
	FirstRetransmit time.Duration `json:"first_retransmit"`
}

// State returns the state.
func (w *World) State() State {
	s := State{At: w.Now()}
	total := uint64(0)
	// a call makes the network send packets that are due at this instant
	for _, h := range w.hosts {
		_ = h.node.Node.Call(func(*stack.Stack, clock.Time) error { return nil })
	}
	for _, h := range w.hosts {
		packets, bytes, sum := h.sent.total()
		s.Packets, s.Bytes = s.Packets+packets, s.Bytes+bytes
		total = mix(total, sum)
		if c, err := control.Ask(w.ends, h.node, control.TCPCounters{}); err == nil {
			s.Retransmits, s.Timeouts = s.Retransmits+c.Retransmits, s.Timeouts+c.Timeouts
		}
		at := time.Duration(h.retransmitted.Load())
		if at > 0 && (s.FirstRetransmit == 0 || at < s.FirstRetransmit) {
			s.FirstRetransmit = at
		}
	}
	s.Hash = fmt.Sprintf("%016x", total)
	return s
}

// Names returns the names of the nodes.
func (w *World) Names() (list []string) {
	for _, h := range w.hosts {
		list = append(list, h.name)
	}
	return list
}

// Close ends the world and waits for its goroutines.
func (w *World) Close() {
	w.finish()
	if w.server != nil {
		w.server.Close()
	}
	for _, l := range w.links {
		_ = l.Close()
	}
	for _, h := range w.hosts {
		_ = h.node.Crash() // nothing reads the captures any more
	}
	w.busy.Wait()
	for _, h := range w.hosts {
		_ = h.files.Close()
	}
	if w.files != nil {
		_ = w.files.Close()
	}
	w.stop()
}

var errNoNode = errors.New("no such node")

func (w *World) host(name string) (*host, error) {
	for _, h := range w.hosts {
		if h.name == name {
			return h, nil
		}
	}
	return nil, fmt.Errorf("%q: %w", name, errNoNode)
}
