package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/netctl"
)

// errNodesNotUp reports that a node of the network does not answer. The command has already printed
// the status.
var errNodesNotUp = errors.New("at least one node is not up")

func (o *netOptions) statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status [NETWORK|FOLDER]",
		Short: "show which nodes are running",
		Long: "Show which nodes of a network, or of all networks, are running. If a node is\n" +
			"not running, the command prints the end of the node's log, and the exit status\n" +
			"is 1.",
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: o.completeNetworks,
		RunE: func(c *cobra.Command, args []string) error {
			s, names, err := o.selected(args, len(args) == 0)
			if err != nil {
				return err
			}
			list := make([]netctl.Status, 0, len(names))
			for _, name := range names {
				n, err := s.Network(name)
				if err != nil {
					return netError(err)
				}
				list = append(list, n.Status(c.Context()))
			}
			if len(list) == 0 && !o.json {
				_, _ = fmt.Fprintf(c.ErrOrStderr(), "no network is up in %s\n", s.Folder())
			}
			return printStatus(c, list, o.json)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON array")
	return c
}

func printStatus(c *cobra.Command, list []netctl.Status, asJSON bool) error {
	out := c.OutOrStdout()
	if asJSON {
		if err := json.NewEncoder(out).Encode(list); err != nil {
			return err
		}
	}
	well := true
	for i := range list {
		well = well && list[i].Well()
		if asJSON {
			continue
		}
		if i > 0 {
			_, _ = fmt.Fprintln(out)
		}
		if err := printNetwork(out, &list[i]); err != nil {
			return err
		}
	}
	if !well {
		return printedError{errNodesNotUp}
	}
	return nil
}

func printNetwork(out io.Writer, s *netctl.Status) error {
	_, _ = fmt.Fprintf(out, "%s, from %s\n", s.Name, s.Source)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	host := func(string) string { return "" }
	if len(s.Hosts) > 0 {
		host = func(name string) string { return cmp.Or(name, "localhost") + "\t" }
		_, _ = fmt.Fprint(t, "Host\t")
	}
	_, _ = fmt.Fprintln(t, "Node\tState\tPID\tSince\tInterfaces\tNeighbors\tRoutes\tSockets")
	for _, n := range s.Nodes {
		if n.Life != netctl.Up {
			pid := "-"
			if n.PID > 0 {
				pid = strconv.Itoa(n.PID)
			}
			_, _ = fmt.Fprintf(t, "%s%s\t%s\t%s\t-\t-\t-\t-\t-\n", host(n.Host), n.Name,
				n.Life, pid)
			continue
		}
		_, _ = fmt.Fprintf(t, "%s%s\t%s\t%d\t%s\t%d/%d up\t%s\t%d\t%d\n", host(n.Host), n.Name,
			n.Life, n.PID,
			time.Since(n.Started).Round(time.Second), n.InterfacesUp, n.Interfaces, neighborsOf(&n),
			n.Routes, n.Sockets)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i, h := range s.Hosts {
		above := strings.Repeat("\n", 1-min(i, 1))
		_, _ = fmt.Fprintf(out, "%shost %s is %s; its sockets and logs are in %s there\n", above,
			h.Name, h.SSH, h.Folder)
		if h.Problem != "" {
			_, _ = fmt.Fprintln(out, "  "+h.Problem)
		}
	}
	for i, n := range s.Nodes {
		if n.Life == netctl.Up || n.Life == netctl.Unreachable ||
			slices.ContainsFunc(s.Nodes[:i], func(o netctl.NodeStatus) bool {
				return o.Log == n.Log && o.Host == n.Host // a node of the same process
			}) {
			continue
		}
		part := "the end of "
		if n.Crashed {
			part = "it crashed: "
		}
		_, _ = fmt.Fprintf(out, "\n%s is %s; %s%s:\n", n.Name, n.Life, part,
			strings.TrimPrefix(n.Host+":"+n.Log, ":"))
		for _, line := range n.LastLines {
			_, _ = fmt.Fprintln(out, "  "+line)
		}
	}
	return nil
}

// neighborsOf describes the state of a node's neighbors. If two hosts exchange no packets, the
// state is unknown, which is normal.
func neighborsOf(n *netctl.NodeStatus) string {
	up := fmt.Sprintf("%d/%d up", n.NeighborsUp, n.Neighbors)
	switch {
	case n.NeighborsUp+n.NeighborsDown == n.Neighbors:
		return up
	case n.NeighborsUp == 0 && n.NeighborsDown == 0:
		return fmt.Sprintf("%d idle", n.Neighbors)
	case n.NeighborsDown == 0:
		return fmt.Sprintf("%s, %d idle", up, n.Neighbors-n.NeighborsUp)
	}
	return fmt.Sprintf("%s, %d down", up, n.NeighborsDown)
}
