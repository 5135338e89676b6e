// Package traffic moves bytes over a virtual network for their own sake: files from node to node
// and by HTTP, the small services of RFC 862 to 864, and RCP's echo server with the client that
// counts. See docs/TRAFFIC.md.
package traffic

import (
	"context"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Host does it for a node.
type Host struct {
	control.Handlers
	node *node.Node
	name string // of the node, for its front page
	underway
}

// New returns what does it for a node of that name.
func New(n *node.Node, name string) *Host {
	h := &Host{Handlers: control.Handlers{}, node: n, name: name}
	control.Handle(h.Handlers, h.sendFile)
	control.Handle(h.Handlers, h.recvFile)
	control.Handle(h.Handlers,
		func(context.Context, control.Transfers) ([]control.Underway, error) {
			return h.underway.transfers(), nil
		})
	control.HandleOrder(h.Handlers, h.stopTransfer)
	control.Handle(h.Handlers, h.serve)
	control.Handle(h.Handlers, h.fetch)
	control.Handle(h.Handlers, h.serveSmall)
	control.Handle(h.Handlers, h.echo)
	control.Handle(h.Handlers, h.echoRCP)
	control.Handle(h.Handlers, h.countRCP)
	return h
}
