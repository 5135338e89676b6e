// Package operator combines a node with its services, and handles the requests about the node
// itself: snapshots, settings, links, routes, sockets, ping and traceroute (Requests), and reloads
// of its file (Reloader).
package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/iperf"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/portforward"
	"github.com/tidepool-net/tidepool/internal/services"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Node is a node with its services. It is a control.Operator.
type Node struct {
	control.Handlers
	Node     *node.Node
	Requests *Requests
	Forwards *portforward.Set
	Services *services.Host
	record   *observe.Host
	reloader *Reloader
	dropped  bool // the process has given up its privileges

	entering   sync.Mutex  // allows one program to enter at a time
	namespaces []*os.File  // namespaces of the host's programs, and sockets in them
	dns        []io.Closer // sockets of the DNS server in these namespaces
}

// Config describes the node.
type Config struct {
	// LNX is the node's file. It must be set.
	LNX *lnx.Config
	// Reread reads LNX's file again for a reload. It is nil if LNX was not read from a file.
	Reread func() (*lnx.Config, error)
	// Node has the other settings. Its Network is ignored.
	Node node.Config
	// Pcap is the file for a capture of all packets from the start. If empty, there is no capture.
	Pcap string
	// Snaplen is how many bytes of each packet Pcap keeps. Zero means all.
	Snaplen int
}

// Open starts the node that cfg describes, with its port forwards. It then drops privileges with
// Drop, and opens the files of captures and samples.
func Open(cfg Config) (*Node, error) {
	var everything *observe.Observer
	if cfg.Pcap != "" {
		var err error
		everything, err = observe.Everything(cfg.Pcap, cfg.Snaplen, cfg.Node.Clock != nil)
		if err != nil {
			cfg.Node.CloseDevices()
			return nil, err
		}
		cfg.Node.Observers = append(slices.Clip(cfg.Node.Observers), everything)
	}
	inner, err := OpenNode(cfg.Node, cfg.LNX)
	if err != nil {
		return nil, err
	}
	n := above(inner, &cfg)
	if err := n.start(&cfg, func() error {
		if everything == nil {
			return nil
		}
		return n.record.Begin(everything, cfg.Node.Overwrite)
	}); err != nil {
		_ = n.Close() // report the first error
		return nil, err
	}
	return n, nil
}

// start opens port forwards and files. begin starts the capture.
func (n *Node) start(cfg *Config, begin func() error) error {
	if err := n.Forwards.OpenFile(cfg.LNX); err != nil {
		return err
	}
	if err := n.Services.DNS.Configure(dnsConfig(cfg.LNX)); err != nil {
		return err
	}
	if cfg.Node.Drop != nil {
		if err := cfg.Node.Drop(); err != nil {
			return err
		}
		n.dropped = true
	}
	if err := begin(); err != nil {
		return err
	}
	if cfg.Node.Drop == nil {
		return nil
	}
	return n.Node.Taps.OpenProbe()
}

// reload reads the node's file again.
func (n *Node) reload(_ context.Context, r control.Reload) (control.Reloaded, error) {
	done, err := n.reloader.Do(r)
	n.Node.Post(n.Requests.forgetDevices)
	if n.dropped && errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w (this node gave up root's privileges when it started: restart it to "+
			"open TUN devices, ports below 1024 and root's files)", err)
	}
	return done, err
}

// changes lists the changes of services between two versions of the file.
func (n *Node) changes(was, now *lnx.Config) []portforward.Change {
	list := n.Forwards.Changes(was, now)
	before, after := dnsConfig(was), dnsConfig(now)
	if !reflect.DeepEqual(before, after) {
		list = append(list, portforward.Change{
			Text: "dns",
			Do:   func() error { return n.Services.DNS.Configure(after) },
			Undo: func() { _ = n.Services.DNS.Configure(before) }, // never fails: it was valid
		})
	}
	return list
}

func dnsConfig(c *lnx.Config) control.DNSConfig {
	cfg := control.DNSConfig{Servers: c.DNS.Servers, Zone: c.DNS.Zone}
	for _, n := range c.DNS.Names {
		cfg.Names = append(cfg.Names, control.HostName(n))
	}
	return cfg
}

func above(inner *node.Node, cfg *Config) *Node {
	name := cfg.LNX.Name
	n := &Node{
		Handlers: control.Handlers{}, Node: inner, Requests: NewRequests(inner),
		Forwards: portforward.New(inner), Services: services.New(inner, name),
	}
	n.record = observe.New(inner, &inner.Time, programTaps{&inner.Taps, &n.Requests.programs},
		inner.Watchers.Announce)
	for _, service := range []control.Handlers{
		n.Requests.Handlers, n.Forwards.Handlers, n.record.Handlers,
		iperf.New(inner, name).Handlers, n.Services.Handlers,
	} {
		maps.Copy(n.Handlers, service)
	}
	n.Forwards.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
		found, err := control.Ask(ctx, n, control.Resolve{Name: name})
		return found.Addrs, err
	}
	n.reloader = NewReloader(inner, cfg.LNX, cfg.Reread, n.changes)
	control.Handle(n.Handlers, n.about)
	control.Handle(n.Handlers, n.reload)
	return n
}

// Closed returns a closed node.
func Closed() *Node {
	n := above(node.Closed(), &Config{LNX: &lnx.Config{}})
	n.Forwards.Close()
	return n
}

// Close closes the node, resets the connections through its port forwards, and completes its
// captures.
func (n *Node) Close() error {
	n.Forwards.Close()
	n.Node.Stop()
	err := errors.Join(n.record.Finish(), n.Node.Close())
	n.Forwards.Wait()
	n.entering.Lock()
	defer n.entering.Unlock()
	n.leaveNamespaces()
	return err
}

// leaveNamespaces closes the namespaces of the host's programs.
func (n *Node) leaveNamespaces() {
	n.Requests.programs.enter(nil)
	closeAll(n.namespaces)
	closeAll(n.dns)
	n.namespaces, n.dns = nil, nil
}

func closeAll[C io.Closer](list []C) {
	for _, f := range list {
		_ = f.Close() // was open only for later programs
	}
}

// Crash closes the node without sending anything more.
func (n *Node) Crash() error {
	n.Node.Crash()
	return n.Close()
}

// Watch implements control.Operator.
func (n *Node) Watch(f func(control.Event)) (stop func()) { return n.Node.Watchers.Watch(f) }

func (n *Node) about(context.Context, control.About) (a control.Node, err error) {
	err = n.Node.Ask(func(*stack.Stack, clock.Time) error {
		f := n.reloader.File()
		a = control.Node{
			Name: f.Name, OldGrammar: f.Grammar != 0, Forwarding: f.Forwarding,
			Capturing: n.record.File(),
		}
		return nil
	})
	return a, err
}

// CheckHere returns the errors of running the file's node on this machine.
func CheckHere(ctx context.Context, c *lnx.Config) lnx.Errors {
	return append(checkHere(ctx, c), portforward.CheckHere(ctx, c)...)
}
