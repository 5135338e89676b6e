// Package operator is a whole node as its operator has it: what package node answers, and the rooms
// above that one, each of which answers for its own requests.
package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/iperf"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/objects"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/portforward"
	"github.com/tidepool-net/tidepool/internal/traffic"
)

// Node is a node with all that it can be asked for. It is a control.Operator.
type Node struct {
	*node.Node
	Doors   *portforward.Set
	perf    *iperf.Host
	traffic *traffic.Host
	objects *objects.Host
	record  *observe.Host
	dropped bool // the process has given up its privileges
}

// Open starts the node that cfg describes and opens its port forwards. Then it gives up privileges
// if cfg.Drop is set, and opens the files that cfg names.
func Open(cfg node.Config) (*Node, error) {
	var everything *observe.Observer
	if cfg.Pcap != "" {
		var err error
		everything, err = observe.Everything(cfg.Pcap, cfg.Snaplen, cfg.Clock != nil)
		if err != nil {
			return nil, err
		}
		cfg.Observers = append(slices.Clip(cfg.Observers), everything)
	}
	inner, err := node.Open(cfg)
	if err != nil {
		return nil, err
	}
	n := above(inner, cfg.LNX.Name)
	if err := n.start(&cfg, func() error {
		if everything == nil {
			return nil
		}
		return n.record.Begin(everything, cfg.Overwrite)
	}); err != nil {
		_ = n.Close() // the first error is the one to tell
		return nil, err
	}
	return n, nil
}

// start does what Open does once the devices are open; begin starts the capture.
func (n *Node) start(cfg *node.Config, begin func() error) error {
	if err := n.Doors.OpenFile(cfg.LNX); err != nil {
		return err
	}
	if cfg.Drop != nil {
		if err := cfg.Drop(); err != nil {
			return err
		}
		n.dropped = true
	}
	if err := begin(); err != nil {
		return err
	}
	if cfg.Drop == nil {
		return nil
	}
	return n.OpenProbe()
}

// reload reads the node's file again.
func (n *Node) reload(r control.Reload) (any, error) {
	done, err := n.Reload(r, n.Doors.Changes)
	if n.dropped && errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w (this node gave up root's privileges when it started: restart it to "+
			"open TUN devices, ports below 1024 and root's files)", err)
	}
	return done, err
}

// above gives a node its rooms.
func above(n *node.Node, name string) *Node {
	return &Node{
		Node: n, Doors: portforward.New(n), perf: iperf.New(n, name), traffic: traffic.New(n, name),
		objects: objects.NewHost(n), record: observe.New(n, n.Driven(), n.Announce),
	}
}

// Closed returns a node that is closed.
func Closed() *Node {
	n := above(node.Closed(), "")
	n.Doors.Close()
	return n
}

// Close ends the node as node.Node's does; what goes through its doors is reset, and what its
// captures have seen is written.
func (n *Node) Close() error {
	n.Doors.Close()
	n.Stop()
	err := errors.Join(n.record.Finish(), n.Node.Close())
	n.Doors.Wait()
	return err
}

// Operator returns the node as its operator sees it.
func (n *Node) Operator() control.Operator { return n }

// Do implements control.Operator.
func (n *Node) Do(ctx context.Context, req any) (any, error) {
	switch r := req.(type) {
	case control.Publish, control.Expose, control.Splice, control.Doors, control.CloseDoor:
		return n.Doors.Do(req)
	case control.Perf, control.PerfServe, control.PerfServers, control.PerfClose:
		return n.perf.Do(ctx, req)
	case control.SendFile, control.RecvFile, control.Transfers, control.StopTransfer,
		control.Serve, control.Fetch, control.ServeSmall,
		control.Echo, control.RCPEcho, control.RCPCount:
		return n.traffic.Do(ctx, req)
	case control.Record, control.StartCapture, control.StopCapture, control.Trace,
		control.PcapStart, control.PcapStop:
		return n.record.Do(ctx, req)
	case control.About:
		return n.about(ctx, r)
	case control.RDTServe, control.RDTList, control.RDTFetch, control.RDTFlows, control.RDTClose:
		return n.objects.Do(ctx, req)
	case control.Reload:
		return n.reload(r)
	}
	return n.Node.Do(ctx, req)
}

// about is what the node says of itself, with what is written down of it.
func (n *Node) about(ctx context.Context, r control.About) (any, error) {
	a, err := control.Ask(ctx, n.Node.Operator(), r)
	if err != nil {
		return nil, err
	}
	a.Capturing = n.record.File()
	return a, nil
}

// CheckHere tells what keeps this machine, as it is now, from running the node of a file.
func CheckHere(ctx context.Context, c *lnx.Config) lnx.Errors {
	return append(node.CheckHere(ctx, c), portforward.CheckHere(ctx, c)...)
}
