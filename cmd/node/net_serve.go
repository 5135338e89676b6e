package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netctl"
	"github.com/tidepool-net/tidepool/internal/topology"
	"github.com/tidepool-net/tidepool/playground/bridge"
)

func (o *netOptions) serveCommand() *cobra.Command {
	var d endpoints
	var pages bridge.Bridge
	c := &cobra.Command{
		Use:   "serve [NETWORK]",
		Short: "serve the web page and the HTTP API of a network",
		Long: "Serve the web page of a network, and the HTTP API of all its nodes, at one\n" +
			"address until Ctrl-C. The command prints the address of the page, with a token:\n" +
			"open it in a browser. The server forwards requests to the nodes. Nodes may stop\n" +
			"and start, and the server follows the changes of `node net apply`. With --bridge,\n" +
			"a page of the playground (docs/PLAYGROUND.md) can be one more node.",
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: o.completeNetworks,
		RunE: func(c *cobra.Command, args []string) error {
			s, n, err := o.network(args)
			if err != nil {
				return err
			}
			if d.listen == "" && d.socket == "" {
				d.listen = "0"
			}
			ctx, stop := endBySignal(c.Context())
			defer stop()
			began := time.Now()
			if err := d.open(ctx); err != nil {
				return err
			}
			defer d.close()
			all := clients{}
			defer all.close()
			d.shape = shapeOf(n)
			tell := func(format string, args ...any) {
				_, _ = fmt.Fprintf(c.ErrOrStderr(), format+"\n", args...)
			}
			connect := func(n *netctl.Network) {
				if err := n.Connect(ctx); err != nil {
					tell("%v", err)
				}
			}
			connect(n)
			if err := pages.Open(ctx, configsOf(n), tell); err != nil {
				return &usageError{err}
			}
			defer pages.Close()
			server, leave := d.serve(all.of(n), func(text string) { tell("%s", text) })
			if err := d.place().print(c.OutOrStdout(), o.json); err != nil {
				return errors.Join(err, leave())
			}
			tell("serving %s of %s until Ctrl-C", counted(len(all), "node"), n.Name())
			s.Follow(ctx, n, func(n *netctl.Network) {
				connect(n)
				server.Replace(all.of(n), shapeOf(n))
				tell("the network has changed: serving %s of %s",
					counted(len(all), "node"), n.Name())
			})
			if err := leave(); err != nil {
				return err
			}
			tell("%s", served(s, n.Name(), time.Since(began)))
			return printedError{context.Cause(ctx)}
		},
	}
	d.flags(c.Flags())
	pages.Flags(c.Flags())
	c.Flags().BoolVar(&o.json, "json", false,
		"print one JSON object, then serve: {\"page\": ..., \"api\": ..., \"token\": ...}")
	return c
}

func (p place) print(out io.Writer, asJSON bool) (err error) {
	switch text := p.String(); {
	case asJSON:
		err = json.NewEncoder(out).Encode(p)
	case text != "":
		_, err = fmt.Fprintln(out, text)
	}
	return err
}

func served(s *netctl.State, name string, how time.Duration) string {
	text := fmt.Sprintf("served %s for %v; ", name, how.Round(time.Second))
	if _, err := s.Network(name); err != nil {
		return text + "it is down"
	}
	return text + named("its nodes keep running: `node net down "+name+"` stops them")
}

// clients contains the API clients of a network's nodes, by node name.
type clients map[string]*api.Client

// of returns an operator for each node of a network. It keeps the clients of unchanged nodes.
func (c clients) of(n *netctl.Network) map[string]control.Operator {
	nodes := map[string]control.Operator{}
	for _, m := range n.Members() {
		if c[m.Name] == nil {
			c[m.Name] = api.NewClient(
				api.Endpoint{Socket: n.Socket(m.Name), Away: m.Host != ""}, m.Name)
		}
		nodes[m.Name] = c[m.Name]
	}
	for name, client := range c {
		if nodes[name] == nil {
			client.Close()
			delete(c, name)
		}
	}
	return nodes
}

func (c clients) close() {
	for _, client := range c {
		client.Close()
	}
}

// shapeOf returns how a network's nodes are connected. It uses the files that can be read.
func shapeOf(n *netctl.Network) *api.Shape {
	configs := configsOf(n)
	s := &api.Shape{Name: n.Name(), Nodes: []api.ShapeNode{}, Links: []api.ShapeLink{}}
	for i, m := range n.Members() {
		if configs[i] == nil {
			s.Nodes = append(s.Nodes, api.ShapeNode{Name: m.Name})
		}
	}
	configs = slices.DeleteFunc(configs, func(c *lnx.Config) bool { return c == nil })
	drawn := api.ShapeOf(topology.From(n.Name(), configs))
	s.Nodes, s.Links = append(s.Nodes, drawn.Nodes...), drawn.Links
	return s
}

// configsOf reads the files of a network's nodes. It returns nil for a file that cannot be read.
func configsOf(n *netctl.Network) (list []*lnx.Config) {
	for _, m := range n.Members() {
		c, _ := configOf(m) // nil after an error
		list = append(list, c)
	}
	return list
}

func configOf(m netctl.Member) (*lnx.Config, error) {
	text, err := files.Text(m.File, files.MaxText)
	if err != nil {
		return nil, err
	}
	return lnx.Parse(m.File, text)
}
