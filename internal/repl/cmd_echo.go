package repl

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// errNoEcho is returned after the statistics have been printed.
var errNoEcho = errors.New("some messages were lost or changed")

type echoFlags struct {
	req   control.Echo
	quiet bool
}

func echoCommand(e *env) *cobra.Command {
	var o echoFlags
	c := &cobra.Command{
		Use:   "echo ADDR [PORT]",
		Short: "use an echo server, or run one",
		Long: "`echo ADDR [PORT]` sends messages to an echo server (port 7, RFC 862) over\n" +
			"TCP, or with -u over UDP. It checks that each message returns unchanged, and\n" +
			"prints the round-trip time. It stops at Ctrl-C, or with -c N after N messages.\n" +
			"In a script, the default of -c is 4.\n\n" +
			"`echo serve [PORT]` runs an echo server for TCP and UDP, until `close SID`.\n" +
			"`discard` and `chargen` are similar servers (RFC 863, RFC 864).",
		Args: cobra.ArbitraryArgs,

		ValidArgsFunction: at(e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return wrong(c, "expected ADDR [PORT], or serve [PORT]")
			}
			return runEcho(e, c, &o, args)
		},
	}
	f, req := c.Flags(), &o.req
	f.BoolVarP(&req.UDP, "udp", "u", false, "use UDP")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print only the summary")
	f.IntVarP(&req.Count, "count", "c", 0, "stop after `N` messages (default: run until Ctrl-C)")
	f.IntVarP(&req.Size, "size", "s", 64, "send `BYTES` in each message")
	secondsVar(f, &req.Interval, "interval", "i", 1, "wait `SECONDS` between messages")
	secondsVar(f, &req.Timeout, "timeout", "W", 2, "wait `SECONDS` for each echo")
	Limit(c, 1, Unlimited, "count")
	Limit(c, 4, mostPingSize, "size")
	Limit(c, leastInterval, mostSeconds, "interval")
	Limit(c, positive, mostSeconds, "timeout")
	c.AddCommand(smallServer(e, "serve [PORT]", "run an echo server", control.ServiceEcho))
	return e.streamFlag(e.jsonFlag(c))
}

func smallServer(e *env, use, short string, service control.SmallService) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   use,
		Short: short,
		Args:  positional,
		RunE: func(c *cobra.Command, args []string) error {
			req := control.ServeSmall{Service: service}
			if len(args) > 0 {
				req.Port = portOf(args[0])
			}
			return show(e, c, req, func(sock control.Socket) string {
				return fmt.Sprintf("Serving %s on port %d (TCP and UDP), socket %d",
					service, sock.Local.Port(), sock.SID)
			})
		},
	})
}

func discardCommand(e *env) *cobra.Command {
	return smallServer(e, "discard [PORT]", "run a discard server (port 9)", control.ServiceDiscard)
}

func chargenCommand(e *env) *cobra.Command {
	return smallServer(e, "chargen [PORT]", "run a chargen server (port 19)",
		control.ServiceChargen)
}

func runEcho(e *env, c *cobra.Command, o *echoFlags, args []string) error {
	addr, err := e.host(c, args[0])
	if err != nil {
		return err
	}
	req := o.req
	req.Addr = addr
	if len(args) > 1 {
		if req.Port, err = parsePort(c, args[1]); err != nil {
			return err
		}
	}
	if req.Count == 0 && e.script() {
		req.Count = scriptPings
	}
	switch {
	case streams(c):
		req.Each = func(r control.EchoReply) { _ = e.line("each", r) } // the type always encodes
	case !e.json(c) && !o.quiet:
		req.Each = func(r control.EchoReply) { e.screen.data(printEcho(&r)) }
	}
	result, err := ask(e, c, req)
	if err != nil {
		return err
	}
	if err := e.answer(c, result, printEchoes(&result)); err != nil {
		return err
	}
	if result.Received < result.Sent && c.Context().Err() == nil {
		err := failed(c, errNoEcho)
		if e.interactive() {
			return &printedError{err} // the printed statistics show it
		}
		return &jsonError{err}
	}
	return nil
}

func printEcho(r *control.EchoReply) string {
	if r.Problem != "" {
		return fmt.Sprintf("%s: seq=%d %s", r.From, r.Seq, printable(r.Problem))
	}
	return fmt.Sprintf("%d bytes from %s: seq=%d time=%s ms", r.Size, r.From, r.Seq, millis(r.RTT))
}

func printEchoes(r *control.EchoResult) string {
	by := "TCP"
	if r.UDP {
		by = "UDP"
	}
	text := fmt.Sprintf("\n--- %s echo by %s ---\n%d sent, %d received, %d wrong\n", r.Peer, by,
		r.Sent, r.Received, r.Wrong)
	if r.Received > 0 {
		text += fmt.Sprintf("rtt min/avg/max = %s/%s/%s ms\n", pingExact(r.Min),
			pingExact(r.Avg), pingExact(r.Max))
	}
	return text
}
