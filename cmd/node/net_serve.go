package main

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/control"
)

func (o *netOptions) serveCommand() *cobra.Command {
	var d doors
	c := &cobra.Command{
		Use:   "serve [NETWORK]",
		Short: "answer HTTP requests about all nodes at one place",
		Long: "Answer HTTP requests about all nodes of a network at one place, until Ctrl-C:\n" +
			"/v1/nodes lists them. It passes on what is asked, so nodes may come and go.",
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: o.completeNetworks,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := o.open()
			if err != nil {
				return err
			}
			n, err := s.Network(networkName(args))
			if err != nil {
				return netError(err)
			}
			if d.listen == "" && d.socket == "" {
				d.listen = "0"
			}
			ctx, stop := endBySignal(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			if err := d.open(ctx); err != nil {
				return err
			}
			defer d.close()
			nodes := map[string]control.Operator{}
			for _, m := range n.Members() {
				client := api.NewClient(api.Endpoint{Socket: n.Socket(m.Name)}, m.Name)
				defer client.Close()
				nodes[m.Name] = client
			}
			leave := d.serve(nodes, c.ErrOrStderr())
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "serving %s of %s until Ctrl-C\n",
				counted(len(nodes), "node"), n.Name())
			<-ctx.Done()
			if err := leave(); err != nil {
				return err
			}
			return context.Cause(ctx)
		},
	}
	d.flags(c.Flags())
	return c
}
