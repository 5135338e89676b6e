// Package operator is a node as its operator has it: package node, its services, and what carries
// out the requests about the node itself: read-outs, settings by name, links, routes, sockets, ping
// and traceroute (Requests), and changes of its file (Reloader).
package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

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

// Node is a node with all that it can be asked for. It is a control.Operator.
type Node struct {
	control.Handlers
	Node     *node.Node
	Requests *Requests
	Forwards *portforward.Set
	record   *observe.Host
	reloader *Reloader
	dropped  bool // the process has given up its privileges
}

// Config says which node to open.
type Config struct {
	// LNX describes the node; required.
	LNX *lnx.Config
	// Reread reads the file of LNX again, for reloads; nil: it is of none.
	Reread func() (*lnx.Config, error)
	// Node is the rest; its Network is that of LNX.
	Node node.Config
	// Pcap is a file to capture every packet to from the start; empty: none.
	Pcap string
	// Snaplen is how many bytes of a packet that capture keeps; 0: all.
	Snaplen int
}

// Open starts the node that cfg describes and opens its port forwards. Then it gives up privileges
// if Drop is set, and opens the files that cfg names.
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
		_ = n.Close() // the first error is the one to tell
		return nil, err
	}
	return n, nil
}

// start does what Open does once the devices are open; begin starts the capture.
func (n *Node) start(cfg *Config, begin func() error) error {
	if err := n.Forwards.OpenFile(cfg.LNX); err != nil {
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

// above gives a node its services.
func above(inner *node.Node, cfg *Config) *Node {
	name := cfg.LNX.Name
	n := &Node{
		Handlers: control.Handlers{}, Node: inner, Requests: NewRequests(inner),
		Forwards: portforward.New(inner),
		record:   observe.New(inner, &inner.Time, &inner.Taps, inner.Watchers.Announce),
	}
	for _, service := range []control.Handlers{
		n.Requests.Handlers, n.Forwards.Handlers, n.record.Handlers,
		iperf.New(inner, name).Handlers, services.New(inner, name).Handlers,
	} {
		maps.Copy(n.Handlers, service)
	}
	n.reloader = NewReloader(inner, cfg.LNX, cfg.Reread, n.Forwards.Changes)
	control.Handle(n.Handlers, n.about)
	control.Handle(n.Handlers, n.reload)
	return n
}

// Closed returns a node that is closed.
func Closed() *Node {
	n := above(node.Closed(), &Config{LNX: &lnx.Config{}})
	n.Forwards.Close()
	return n
}

// Close ends the node as node.Node's does; what goes through its doors is reset, and what its
// captures have seen is written.
func (n *Node) Close() error {
	n.Forwards.Close()
	n.Node.Stop()
	err := errors.Join(n.record.Finish(), n.Node.Close())
	n.Forwards.Wait()
	return err
}

// Watch implements control.Operator.
func (n *Node) Watch(f func(control.Event)) (stop func()) { return n.Node.Watchers.Watch(f) }

// about is what the node says of itself.
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

// CheckHere tells what keeps this machine, as it is now, from running the node of a file.
func CheckHere(ctx context.Context, c *lnx.Config) lnx.Errors {
	return append(checkHere(ctx, c), portforward.CheckHere(ctx, c)...)
}
