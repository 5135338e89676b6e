package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func socksCommand() *cobra.Command {
	var r remote
	c := &cobra.Command{
		Use:   "socks NODE [[HOST-ADDR:]PORT]",
		Short: "run a proxy into a network, as one of its nodes",
		Long: "Run a SOCKS5 and HTTP proxy until Ctrl-C. Browsers and programs that use the\n" +
			"proxy reach the network as if they ran on NODE, which also looks up names for\n" +
			"them. Without PORT, the proxy is at port 1080 of the loopback. The shell's\n" +
			"`socks` opens a proxy that stays open, and can require a password.\n" +
			"\n" + nodeArg,
		Example: "  node socks A\n" +
			"  curl --socks5-hostname 127.0.0.1:1080 http://b/\n" +
			"  curl -x http://127.0.0.1:1080 http://b/\n" +
			"  chromium --proxy-server=socks5://127.0.0.1:1080 http://b/",
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: r.complete,
		RunE: func(c *cobra.Command, args []string) error {
			port := "1080"
			if len(args) > 1 {
				port = args[1]
			}
			return r.socks(c, args[0], port)
		},
	}
	r.flags(c)
	return c
}

// socks opens the proxy and waits. At Ctrl-C it closes the proxy and its connections.
func (r *remote) socks(c *cobra.Command, ref, port string) error {
	ctx, stop := endBySignal(c.Context())
	defer stop()
	client, name, err := r.client(ctx, ref)
	if err != nil {
		return err
	}
	req, err := proxyAt(port)
	if err != nil {
		return &usageError{err}
	}
	door, err := control.Ask(ctx, client, req)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "SOCKS5 and HTTP proxy of %s at %s; Ctrl-C closes it\n", name,
		door.From)
	following, leave := following(ctx, client, name)
	defer leave()
	<-following.Done()
	if ctx.Err() == nil { // the node has stopped
		return r.ended(name, context.Cause(following))
	}
	return control.Order(context.WithoutCancel(ctx), client,
		control.CloseDoor{ID: door.ID, Cut: true})
}

// proxyAt parses [HOST-ADDR:]PORT.
func proxyAt(text string) (r control.Socks, err error) {
	if !strings.Contains(text, ":") {
		text = "127.0.0.1:" + text
	}
	at, err := netip.ParseAddrPort(strings.Replace(text, "localhost", "127.0.0.1", 1))
	if err != nil {
		return r, fmt.Errorf("%q: must be a port, or an address of this machine and a port", text)
	}
	return control.Socks{On: at.Addr(), Port: at.Port()}, nil
}
