package repl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func (s *Shell) sockets() *cobra.Command {
	var info bool
	c := &cobra.Command{
		Use:     "sockets",
		Aliases: []string{"ls"},
		Short:   "with -i what ss -ti tells of each",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := control.Ask(c.Context(), s.op, control.Sockets{Info: info})
			if err != nil {
				return failed(c, err)
			}
			return s.answer(c, list, printSockets(list))
		},
	}
	c.Flags().BoolVarP(&info, "info", "i", false, "RTT, windows, counts, and why no more is sent")
	return s.jsonFlag(c)
}

func (s *Shell) accept() *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use:     "accept PORT",
		Aliases: []string{"a"},
		Short:   "listen, and accept all that come",
		RunE: func(c *cobra.Command, args []string) error {
			port, err := parsePort(c, args[0])
			if err != nil {
				return err
			}
			sock, err := control.Ask(c.Context(), s.op, control.Listen{Port: port})
			if err != nil {
				return failed(c, err)
			}
			return s.answer(c, sock, fmt.Sprintf("Created listen socket with ID %d", sock.SID))
		},
	})
}

func (s *Shell) connect() *cobra.Command {
	return s.jsonFlag(&cobra.Command{
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
			sock, err := control.Ask(c.Context(), s.op, control.Connect{Addr: addr, Port: port})
			if err != nil {
				return failed(c, err)
			}
			return s.answer(c, sock, fmt.Sprintf("Created new socket with ID %d", sock.SID))
		},
	})
}

// mostRead bounds what one recv holds in memory.
const mostRead = 64 << 20

func (s *Shell) recv() *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use:               "recv SID N [y|n]",
		Aliases:           []string{"r"},
		Short:             "read up to N bytes; y: all N",
		ValidArgsFunction: at(s.connections, nil, words("y", "n")),
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
			data, err := control.Ask(c.Context(), s.op, control.Read{SID: sid, N: n, Full: full})
			if err != nil {
				return failed(c, err)
			}
			return s.answer(c, data, s.printData(data))
		},
	})
}

func (s *Shell) shutdown() *cobra.Command {
	return &cobra.Command{
		Use:               "shutdown SID [read|write|both]",
		Aliases:           []string{"sd"},
		Short:             "close one direction; alone: write",
		ValidArgsFunction: at(s.connections, words("read", "write", "both")),
		RunE: func(c *cobra.Command, args []string) error {
			sid, err := parseSID(c, args[0])
			if err != nil {
				return err
			}
			how := control.ShutdownWrite
			if len(args) > 1 {
				how = control.How(args[1])
			}
			switch how {
			case control.ShutdownRead, control.ShutdownWrite, control.ShutdownBoth:
			default:
				return wrong(c, "%q is none of read, write, both", args[1])
			}
			err = control.Order(c.Context(), s.op, control.Shutdown{SID: sid, How: how})
			return failed(c, err)
		},
	}
}

func (s *Shell) close() *cobra.Command {
	return &cobra.Command{
		Use:               "close SID",
		Aliases:           []string{"cl"},
		Short:             "close a socket; written data is delivered",
		ValidArgsFunction: at(s.everySocket),
		RunE: func(c *cobra.Command, args []string) error {
			sid, err := parseSID(c, args[0])
			if err != nil {
				return err
			}
			return failed(c, control.Order(c.Context(), s.op, control.Close{SID: sid}))
		},
	}
}

func (s *Shell) window() *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use:               "window SID",
		Short:             "a connection's send and receive windows",
		ValidArgsFunction: at(s.connections),
		RunE: func(c *cobra.Command, args []string) error {
			sid, err := parseSID(c, args[0])
			if err != nil {
				return err
			}
			w, err := control.Ask(c.Context(), s.op, control.Window{SID: sid})
			if err != nil {
				return failed(c, err)
			}
			text := fmt.Sprintf("send window %d, receive window %d", w.Send, w.Receive)
			return s.answer(c, w, text)
		},
	})
}

func (s *Shell) congestion() *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use:   "cc SID NAME",
		Short: "change a connection's congestion control",
		Long: "Change a connection's congestion control. NAME is one of those that this\n" +
			"setting takes:",
		Annotations:       map[string]string{settingsAbout: "tcp.congestion"},
		ValidArgsFunction: at(s.connections),
		RunE: func(c *cobra.Command, args []string) error {
			sid, err := parseSID(c, args[0])
			if err != nil {
				return err
			}
			req := control.Congestion{SID: sid, Name: args[1]}
			sock, err := control.Ask(c.Context(), s.op, req)
			if err != nil {
				return failed(c, err)
			}
			return s.answer(c, sock, fmt.Sprintf("socket %d uses %s", sock.SID, args[1]))
		},
	})
}

// failed puts the command's name in front of an error, unless it begins with it. What the error is
// about it says itself. Nil stays nil.
func failed(c *cobra.Command, err error) error {
	name := nameOf(c)
	if err == nil || strings.HasPrefix(err.Error(), name+" ") ||
		strings.HasPrefix(err.Error(), name+":") {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// writeAll writes n bytes that fill repeats, in pieces, so that Ctrl-C finds a place to stop.
func (s *Shell) writeAll(ctx context.Context, sid int, piece []byte, n int64) error {
	for n > 0 {
		part := piece[:min(n, int64(len(piece)))]
		w, err := control.Ask(ctx, s.op, control.Write{SID: sid, Data: part})
		if err != nil {
			return err
		}
		n -= int64(w.Bytes)
	}
	return nil
}
