// Package services contains a node's servers and clients: files over TCP and HTTP, objects over RDT
// (package rdt), RCP's echo server and its measuring client, DNS, probes of NATs, and the small
// services of RFC 862 to 864. See docs/TRAFFIC.md.
package services

import (
	"context"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Host serves the requests for services of one node.
type Host struct {
	control.Handlers
	node *node.Node
	name string // the node's name, for the front page
	DNS  DNS
	underway
}

// New returns the Host of a node with this name.
func New(n *node.Node, name string) *Host {
	h := &Host{
		Handlers: control.Handlers{}, node: n, name: name, DNS: DNS{node: n, name: name},
	}
	control.Handle(h.Handlers, h.sendFile)
	control.Handle(h.Handlers, h.recvFile)
	control.Handle(h.Handlers,
		func(_ context.Context, r control.NATServe) (control.NATServed, error) {
			return serveProbes(n, r)
		})
	control.Handle(h.Handlers,
		func(ctx context.Context, r control.NATProbe) (control.NATProbed, error) {
			return probeNAT(ctx, n, r)
		})
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
	control.Handle(h.Handlers, h.DNS.show)
	control.Handle(h.Handlers, h.DNS.set)
	control.Handle(h.Handlers, h.DNS.resolve)
	return h
}
