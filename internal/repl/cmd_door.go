package repl

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func publishCommand(e *env) *cobra.Command {
	var req control.Publish
	c := &cobra.Command{
		Use:   "publish [PORT ADDR:PORT]",
		Short: "forward a port of this machine to a host",
		Args:  cobra.ArbitraryArgs,
		Long: "Forward a TCP port of this machine to a virtual host, so that a browser or curl\n" +
			"on this machine can load a page there: `publish 8080 10.1.0.2:80`. The port is\n" +
			"on the loopback, unless you write another address of the machine before it,\n" +
			"such as [::1]:8080. With --udp it forwards datagrams. Without arguments it\n" +
			"lists the port forwards, like `doors`.",
		Example:           "publish 8080 10.1.0.2:80",
		ValidArgsFunction: at(nil, e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return listDoorsAlone(e, c, args)
			}
			err := listensAt(c, args[0], &req.On, &req.Port)
			if err != nil {
				return err
			}
			if req.To, err = e.hostPort(c, args[1]); err != nil {
				return err
			}
			return openDoor(e, c, req)
		},
	}
	c.Flags().BoolVar(&req.UDP, "udp", false, "forward datagrams")
	return e.jsonFlag(c)
}

func exposeCommand(e *env) *cobra.Command {
	var req control.Expose
	c := &cobra.Command{
		Use:   "expose [PORT HOST:PORT]",
		Short: "forward a port of the node to a service",
		Args:  cobra.ArbitraryArgs,
		Long: "Forward a TCP port of the node to a service on this machine, or on another one\n" +
			"that this machine can reach: `expose 80 127.0.0.1:3000`. Without a host, PORT is\n" +
			"on this machine. With --udp it forwards datagrams. Without arguments it lists\n" +
			"the port forwards, like `doors`.",
		Example: "expose 80 127.0.0.1:3000",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return listDoorsAlone(e, c, args)
			}
			var err error
			if req.Port, err = parsePort(c, args[0]); err != nil {
				return err
			}
			req.To = args[1]
			if !strings.Contains(req.To, ":") {
				if _, err := parsePort(c, req.To); err != nil {
					return err
				}
				req.To = "127.0.0.1:" + req.To
			}
			return openDoor(e, c, req)
		},
	}
	c.Flags().BoolVar(&req.UDP, "udp", false, "forward datagrams")
	return e.jsonFlag(c)
}

func socksCommand(e *env) *cobra.Command {
	var req control.Socks
	c := &cobra.Command{
		Use:   "socks [PORT]",
		Short: "run a proxy that reaches the network",
		Args:  cobra.MaximumNArgs(1),
		Long: "Run a SOCKS5 and HTTP proxy at a port of this machine. Browsers and programs\n" +
			"that use the proxy reach the network as if they ran on this node, which also\n" +
			"looks up names for them. The port is on the loopback (1080 is usual; without\n" +
			"PORT, a free one), unless you write another address of the machine before it,\n" +
			"such as [::1]:1080. `doors close` closes it.",
		Example: "socks 1080",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := listensAt(c, args[0], &req.On, &req.Port); err != nil {
					return err
				}
			}
			return openDoor(e, c, req)
		},
	}
	c.Flags().StringVar(&req.User, "user", "", "the `USER` that clients must give")
	c.Flags().StringVar(&req.Password, "password", "", "the `PASSWORD` that clients must give")
	return e.jsonFlag(c)
}

// listensAt parses [HOST-ADDR:]PORT.
func listensAt(c *cobra.Command, text string, on *netip.Addr, port *uint16) (err error) {
	if i := strings.LastIndex(text, ":"); i >= 0 {
		host := strings.Replace(text[:i], "localhost", "127.0.0.1", 1)
		if *on, err = parseAddr(c, host); err != nil {
			return err
		}
		text = text[i+1:]
	}
	if *port, err = parsePort(c, text); err != nil && text != "0" {
		return err
	}
	return nil
}

func spliceCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "splice ADDR [HOST-ADDR]",
		Short: "forward all ports of an address",
		Long: "Forward every port of the node's address ADDR to the same port of this machine's\n" +
			"loopback, or of HOST-ADDR, for TCP and UDP. Ports at which the node listens are\n" +
			"not forwarded. If the machine refuses a connection, the node refuses it too.",
		ValidArgsFunction: at(e.ownAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			req := control.Splice{Addr: addrOf(args[0])}
			if len(args) > 1 {
				req.To = addrOf(args[1])
			}
			return openDoor(e, c, req)
		},
	})
}

func listDoorsAlone(e *env, c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return wrong(c, "expected two arguments or none")
	}
	return listDoors(e, c)
}

func openDoor(e *env, c *cobra.Command, req control.Request[control.Door]) error {
	d, err := ask(e, c, req)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Port forward %d: %s %s leads to %s", d.ID, strings.ToUpper(d.Network),
		printable(d.From), printable(d.To))
	if d.Kind == control.DoorPublish || d.Kind == control.DoorSocks {
		if on, err := netip.ParseAddrPort(d.From); err == nil && !on.Addr().IsLoopback() {
			text += " (reachable from other machines)"
		}
	}
	return e.answer(c, d, text)
}

func listDoors(e *env, c *cobra.Command) error {
	return show(e, c, control.Doors{}, printDoors)
}

func doorsCommand(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "doors",
		Short: "list port forwards; doors close ID",
		Long: "List the port forwards between this machine and the virtual network: active and\n" +
			"total flows, failed flows, and bytes in each direction.\n" +
			"\n" +
			"`doors close ID` closes a port forward, and `doors close all` closes all: they\n" +
			"accept no new connections. Existing connections stay open, unless you add\n" +
			"--cut. Flows of datagrams end at once.",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return notAVerb(c, args[0])
			}
			return listDoors(e, c)
		},
	}
	c.AddCommand(doorsCloseCommand(e))
	return e.jsonFlag(c)
}

func doorsCloseCommand(e *env) *cobra.Command {
	var cut bool
	c := &cobra.Command{
		Use:               "close ID",
		Short:             "close a port forward, or all",
		Args:              positional,
		ValidArgsFunction: at(e.doorIDs),
		RunE: func(c *cobra.Command, args []string) error {
			var ids []int
			if args[0] == "all" {
				list, err := ask(e, c, control.Doors{})
				if err != nil {
					return err
				}
				for i := range list {
					if cut || !list[i].Closing {
						ids = append(ids, list[i].ID)
					}
				}
			} else {
				id, err := strconv.ParseUint(args[0], 10, 31)
				if err != nil {
					return wrong(c, "%q is neither a port forward's number nor all", args[0])
				}
				ids = append(ids, int(id))
			}
			for _, id := range ids {
				if err := control.Order(c.Context(), e.op,
					control.CloseDoor{ID: id, Cut: cut}); err != nil {
					return failed(c, err)
				}
			}
			if !cut {
				printStillOpen(c.Context(), e, ids)
			}
			return e.done(c, nil)
		},
	}
	c.Flags().BoolVar(&cut, "cut", false, "also reset open connections")
	return c
}

func printStillOpen(ctx context.Context, e *env, ids []int) {
	list, err := control.Ask(ctx, e.op, control.Doors{})
	if err != nil {
		return // the port forwards are already closed
	}
	for i := range list {
		if d := &list[i]; d.Open > 0 && d.Network != "udp" && slices.Contains(ids, d.ID) {
			e.screen.talk(fmt.Sprintf("%s through port forward %d, until the last closes: "+
				"`doors close %d --cut` resets the open ones",
				counted(uint64(d.Open), "flow"), d.ID, d.ID))
		}
	}
}

func (e *env) doorIDs(ctx context.Context, _ string) []string {
	return append([]string{"all"}, listWords(ctx, e, control.Doors{},
		func(d *control.Door) string { return strconv.Itoa(d.ID) })...)
}

func printDoors(list []control.Door) string {
	const head = "<ID |   Kind|  Net|           From|             To|  Open|   All|  Failed|" +
		"  Bytes in|  Bytes out"
	var problems strings.Builder
	text := table(head, list, func(d *control.Door) []string {
		to := printable(d.To)
		if d.Closing {
			to += " (closed)"
		}
		if d.Problem != "" {
			fmt.Fprintf(&problems, "%d: last failure: %s\n", d.ID, printable(d.Problem))
		}
		return []string{
			strconv.Itoa(d.ID), string(d.Kind), d.Network, printable(d.From), to,
			strconv.Itoa(d.Open), number(d.Opened), number(d.Failed), number(d.In), number(d.Out),
		}
	})
	return text + problems.String()
}
