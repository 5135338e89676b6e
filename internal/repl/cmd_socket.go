package repl

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// socketFlags are those of ss that mean something here.
type socketFlags struct {
	info, timers, tcp, udp, listening, noHeader bool
	numeric, all                                bool // which it always is
}

// keeps reports whether a socket is one of those asked for.
func (o *socketFlags) keeps(k control.Socket) bool {
	udp := isUDP(k)
	if o.tcp != o.udp && udp != o.udp {
		return false
	}
	return !o.listening || k.State == "LISTEN" || udp && k.Remote.Port() == 0
}

func socketsCommand(e *env) *cobra.Command {
	var o socketFlags
	c := &cobra.Command{
		Use:   "sockets",
		Short: "like ss; -i: windows, and what limits it",
		Long: "The sockets, like `ss -tuan`; with -i what `ss -i` tells of each connection, and\n" +
			"what limits it: app (nothing more was written), cwnd, rwnd, sndbuf, pacing,\n" +
			"nagle, cork, persist, recovery or idle, and for how long; with -o the time-out\n" +
			"that it waits for, and how many came before. sid is the number by which\n" +
			"commands know it; SYN-RECV, who has sent a SYN to a listener and nothing after\n" +
			"it, has none. `ls` is the course's table.",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := listSockets(e, c, &o)
			if err != nil {
				return failed(c, err)
			}
			return e.answer(c, list, fieldSockets(list, &o))
		},
	}
	f := c.Flags()
	o.infoFlag(c)
	f.BoolVarP(&o.timers, "options", "o", false, "time-outs: what for, and when")
	f.BoolVarP(&o.tcp, "tcp", "t", false, "those of TCP")
	f.BoolVarP(&o.udp, "udp", "u", false, "those of UDP")
	f.BoolVarP(&o.listening, "listening", "l", false, "those that listen")
	f.BoolVarP(&o.noHeader, "no-header", "H", false, "without the titles")
	f.BoolVarP(&o.all, "all", "a", false, "those that listen too, as always")
	f.BoolVarP(&o.numeric, "numeric", "n", false, "numbers, as always")
	return e.jsonFlag(c)
}

func (o *socketFlags) infoFlag(c *cobra.Command) {
	c.Flags().BoolVarP(&o.info, "info", "i", false, "RTT, windows, counts, and why no more is sent")
}

// listSockets returns the sockets that the flags ask for.
func listSockets(e *env, c *cobra.Command, o *socketFlags) ([]control.Socket, error) {
	list, err := control.Ask(c.Context(), e.op, control.Sockets{Info: o.info, Timers: o.timers})
	return slices.DeleteFunc(list, func(k control.Socket) bool { return !o.keeps(k) }), err
}

// courseSockets is `ls`, which prints the course's table of the sockets that have a number.
func courseSockets(e *env) *cobra.Command {
	var o socketFlags
	c := &cobra.Command{
		Use:   "ls",
		Short: "sockets, in the course's table",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := listSockets(e, c, &o)
			if err != nil {
				return failed(c, err)
			}
			list = slices.DeleteFunc(list, func(k control.Socket) bool { return k.SID < 0 })
			return e.answer(c, list, printSockets(list))
		},
	}
	o.infoFlag(c)
	return e.jsonFlag(c)
}

func acceptCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:     "accept PORT",
		Aliases: []string{"a"},
		Short:   "listen, and accept all that come",
		RunE: func(c *cobra.Command, args []string) error {
			port, err := parsePort(c, args[0])
			if err != nil {
				return err
			}
			sock, err := control.Ask(c.Context(), e.op, control.Listen{Port: port})
			if err != nil {
				return failed(c, err)
			}
			return e.answer(c, sock, fmt.Sprintf("Created listen socket with ID %d", sock.SID))
		},
	})
}

func connectCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:     "connect ADDR PORT",
		Aliases: []string{"c"},
		Short:   "open a connection",
		RunE: func(c *cobra.Command, args []string) error {
			addr, err := parseAddr(c, args[0])
			if err != nil {
				return err
			}
			port, err := parsePort(c, args[1])
			if err != nil {
				return err
			}
			sock, err := control.Ask(c.Context(), e.op, control.Connect{Addr: addr, Port: port})
			if err != nil {
				return failed(c, err)
			}
			return e.answer(c, sock, fmt.Sprintf("Created new socket with ID %d", sock.SID))
		},
	})
}

// mostRead bounds what one recv holds in memory.
const mostRead = 64 << 20

func recvCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:               "recv SID N [y|n]",
		Aliases:           []string{"r"},
		Short:             "read up to N bytes; y: all N",
		ValidArgsFunction: at(e.connections, nil, words("y", "n")),
		RunE: func(c *cobra.Command, args []string) error {
			sid, err := parseSID(c, args[0])
			if err != nil {
				return err
			}
			n, err := parseCount(c, args[1], 1, mostRead)
			if err != nil {
				return err
			}
			if len(args) > 2 && args[2] != "y" && args[2] != "n" {
				return wrong(c, "%q is neither y nor n", args[2])
			}
			full := len(args) > 2 && args[2] == "y"
			data, err := control.Ask(c.Context(), e.op, control.Read{SID: sid, N: n, Full: full})
			if err != nil {
				return failed(c, err)
			}
			return e.answer(c, data, printData(e, data))
		},
	})
}

// shortHow are the directions by their letters.
var shortHow = map[string]control.How{"r": control.ShutdownRead, "w": control.ShutdownWrite}

func shutdownCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:               "shutdown SID [read|write|both]",
		Aliases:           []string{"sd"},
		Short:             "close one direction; alone: write",
		Long:              "Close one direction of a connection, or both. r is read, w is write.",
		ValidArgsFunction: at(e.connections, words("read", "write", "both")),
		RunE: func(c *cobra.Command, args []string) error {
			sid, err := parseSID(c, args[0])
			if err != nil {
				return err
			}
			how := control.ShutdownWrite
			if len(args) > 1 {
				how = cmp.Or(shortHow[args[1]], control.How(args[1]))
			}
			switch how {
			case control.ShutdownRead, control.ShutdownWrite, control.ShutdownBoth:
			default:
				return wrong(c, "%q is none of read, write, both", args[1])
			}
			err = control.Order(c.Context(), e.op, control.Shutdown{SID: sid, How: how})
			return e.done(c, err)
		},
	}
}

func closeCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:               "close SID",
		Aliases:           []string{"cl"},
		Short:             "close a socket; written data is delivered",
		ValidArgsFunction: at(e.everySocket),
		RunE: func(c *cobra.Command, args []string) error {
			sid, err := parseSID(c, args[0])
			if err != nil {
				return err
			}
			return e.done(c, control.Order(c.Context(), e.op, control.Close{SID: sid}))
		},
	}
}

func windowCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:               "window SID",
		Short:             "a connection's send and receive windows",
		ValidArgsFunction: at(e.connections),
		RunE: func(c *cobra.Command, args []string) error {
			sid, err := parseSID(c, args[0])
			if err != nil {
				return err
			}
			w, err := control.Ask(c.Context(), e.op, control.Window{SID: sid})
			if err != nil {
				return failed(c, err)
			}
			text := fmt.Sprintf("send window %d, receive window %d", w.Send, w.Receive)
			return e.answer(c, w, text)
		},
	})
}

func congestionCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:     "cc SID NAME",
		Aliases: []string{"sc", "scc"},
		Short:   "change a connection's congestion control",
		Long: "Change a connection's congestion control. NAME is one of those that this\n" +
			"setting takes:",
		Annotations:       map[string]string{settingsAbout: "tcp.congestion"},
		ValidArgsFunction: at(e.connections),
		RunE: func(c *cobra.Command, args []string) error {
			sid, err := parseSID(c, args[0])
			if err != nil {
				return err
			}
			req := control.Congestion{SID: sid, Name: args[1]}
			sock, err := control.Ask(c.Context(), e.op, req)
			if err != nil {
				return failed(c, err)
			}
			return e.answer(c, sock, fmt.Sprintf("socket %d uses %s", sock.SID, args[1]))
		},
	})
}

// writeAll writes n bytes that fill repeats, in pieces, so that Ctrl-C finds a place to stop.
func writeAll(ctx context.Context, e *env, sid int, piece []byte, n int64) error {
	for n > 0 {
		part := piece[:min(n, int64(len(piece)))]
		w, err := control.Ask(ctx, e.op, control.Write{SID: sid, Data: part})
		if err != nil {
			return err
		}
		n -= int64(w.Bytes)
	}
	return nil
}
