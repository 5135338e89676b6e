// Package operator is a whole node as its operator has it: what package node answers, and the rooms
// above that one, each of which answers for its own requests.
package operator

import (
	"context"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/door"
	"github.com/tidepool-net/tidepool/internal/iperf"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/objects"
	"github.com/tidepool-net/tidepool/internal/traffic"
)

// Node is a node with all that it can be asked for. It is a control.Operator.
type Node struct {
	*node.Node
	Doors   *door.Set
	perf    *iperf.Host
	traffic *traffic.Host
	objects *objects.Host
}

// Open starts the node that cfg describes, and opens the doors of its file.
func Open(cfg node.Config) (*Node, error) {
	inner, err := node.Open(cfg)
	if err != nil {
		return nil, err
	}
	n := above(inner, cfg.LNX.Name)
	if err := n.Doors.OpenFile(cfg.LNX); err != nil {
		_ = n.Close() // the first error is the one to tell
		return nil, err
	}
	return n, nil
}

// above gives a node its rooms.
func above(n *node.Node, name string) *Node {
	return &Node{
		Node: n, Doors: door.New(n), perf: iperf.New(n, name), traffic: traffic.New(n, name),
		objects: objects.New(n),
	}
}

// Closed returns a node that is closed.
func Closed() *Node {
	n := above(node.Closed(), "")
	n.Doors.Close()
	return n
}

// Close ends the node as node.Node's does; what goes through its doors is reset.
func (n *Node) Close() error {
	n.Doors.Close()
	err := n.Node.Close()
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
	case control.RDTServe, control.RDTList, control.RDTFetch:
		return n.objects.Do(ctx, req)
	case control.Reload:
		return n.Reload(r, n.Doors.Changes)
	}
	return n.Node.Do(ctx, req)
}

// CheckHere tells what keeps this machine, as it is now, from running the node of a file.
func CheckHere(ctx context.Context, c *lnx.Config) lnx.Errors {
	return append(node.CheckHere(ctx, c), door.CheckHere(ctx, c)...)
}
