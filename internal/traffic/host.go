// Package traffic moves bytes over a virtual network for their own sake: files from node to node
// and by HTTP, the small services of RFC 862 to 864, and RCP's echo server with the client that
// counts. See docs/TRAFFIC.md.
package traffic

import (
	"context"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Host does it for a node.
type Host struct {
	node *node.Node
	name string // of the node, for its front page
	underway
}

// New returns what does it for a node of that name.
func New(n *node.Node, name string) *Host { return &Host{node: n, name: name} }

// Do carries out the requests that move bytes.
func (h *Host) Do(ctx context.Context, req any) (any, error) {
	switch r := req.(type) {
	case control.SendFile:
		return h.sendFile(ctx, r)
	case control.RecvFile:
		return h.recvFile(ctx, r)
	case control.Transfers:
		return h.underway.transfers(), nil
	case control.StopTransfer:
		return control.Nothing{}, h.stopTransfer(r)
	case control.Serve:
		return h.serve(ctx, r)
	case control.Fetch:
		return h.fetch(ctx, r)
	case control.ServeSmall:
		return h.serveSmall(r)
	case control.Echo:
		return h.echo(ctx, r)
	case control.RCPEcho:
		return h.echoRCP(r)
	case control.RCPCount:
		return h.countRCP(ctx, r)
	}
	return nil, fmt.Errorf("request %T: %w", req, control.ErrUnsupported)
}
