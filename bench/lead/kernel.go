//go:build linux

package lead

import (
	"context"
	"net/netip"

	"github.com/tidepool-net/tidepool/bench/end"
	"github.com/tidepool-net/tidepool/bench/netns"
)

// Kernel measures the kernel's own TCP across a routing namespace.
type Kernel struct {
	Row    *netns.Row
	Stream Stream
}

// Run transfers a stream through the namespaces.
func (k *Kernel) Run(ctx context.Context) (r Sample, err error) {
	if err := k.Row.Lose(ctx, k.Stream.Path.Loss); err != nil {
		return r, err
	}
	client := k.Stream.spec()
	client.Stack = "kernel"
	client.Far = netip.MustParseAddr(netns.ServerAddr)
	server := client
	server.Work = end.Work{}
	server.Sides = []end.Side{{Addr: client.Far}}
	b := &Bed{}
	near, far := k.Row.Into(netns.Server), k.Row.Into(netns.Client)
	if err := b.ends(ctx, near, far, &server, &client); err != nil {
		return r, err
	}
	defer b.End()
	return b.stream(&k.Stream)
}
