// Package services holds what a node serves to others and fetches from them: files over TCP and by
// HTTP, objects over RDT (package rdt), RCP's echo server and the client that counts lost packets,
// and the small services of RFC 862 to 864. See docs/TRAFFIC.md.
package services

import (
	"context"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Host carries out the requests about the services of one node.
type Host struct {
	control.Handlers
	node *node.Node
	name string // of the node, for its front page
	underway
}

// New returns the Host of a node of that name.
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
	control.Handle(h.Handlers, h.serveRDT)
	control.Handle(h.Handlers, h.listRDT)
	control.Handle(h.Handlers, h.fetchRDT)
	control.Handle(h.Handlers, h.flowsRDT)
	control.HandleOrder(h.Handlers, h.closeRDT)
	return h
}
