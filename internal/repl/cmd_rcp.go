package repl

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func rcpCommand(e *env) *cobra.Command {
	return overUDP[control.RCPSocket](e, &transport[control.RCPSocket]{
		name: "rcp", short: "use RCP (sliding fence): echo, count",
		long: "RCP is a reliable transport with a sliding fence, over UDP ports; it comes from\n" +
			"document 000 (see README.md). `rcp` alone lists its sockets, with sent,\n" +
			"retransmitted and unacknowledged packets, packets behind a gap, and bytes to\n" +
			"read.\n" +
			"`rcp echo PORT` runs that document's echo server; `rcp count ADDR PORT` is its\n" +
			"client: it writes 1000 pieces of 200 to 399 random bytes, checks their echo, and\n" +
			"prints the number of packets. `rcp close PORT` closes the sockets of a port.",
		list: control.RCPSockets{}, print: printRCP,
		port: func(k *control.RCPSocket) uint16 { return k.Local.Port() },
		end: func(port uint16) control.Request[control.Nothing] {
			return control.RCPClose{Port: port}
		},
	}, rcpEchoCommand(e), rcpCountCommand(e))
}

// These are the limits of the flags. RCP's timer ticks every 10 ms.
const (
	mostWidth       = 1024
	leastRCPSeconds = 0.011
)

func rcpFlags(c *cobra.Command, o *control.RCPOptions) {
	f := c.Flags()
	f.IntVar(&o.Width, "width", 32, "use a fence of `PACKETS`; the receiver's must not be\n"+
		"narrower than the sender's")
	f.BoolVar(&o.Window, "window", false, "use the classic window: only contiguous data counts")
	f.BoolVar(&o.Timer, "timer", false, "retransmit as in RFC 6298 instead of every 10 ms")
	secondsVar(f, &o.Timeout, "timeout", "", 3, "close after `SECONDS` of silence")
	Limit(c, 1, mostWidth, "width")
	Limit(c, leastRCPSeconds, mostSeconds, "timeout")
}

func rcpEchoCommand(e *env) *cobra.Command {
	var req control.RCPEcho
	c := &cobra.Command{
		Use:   "echo PORT",
		Short: "run an echo server",
		Args:  positional,
		RunE: func(c *cobra.Command, args []string) error {
			req.Port = portOf(args[0])
			return show(e, c, req, func(at control.RCPPort) string {
				return fmt.Sprintf("Echoing RCP on UDP port %d", at.Local.Port())
			})
		},
	}
	rcpFlags(c, &req.Options)
	return e.jsonFlag(c)
}

func rcpCountCommand(e *env) *cobra.Command {
	var req control.RCPCount
	c := &cobra.Command{
		Use:   "count ADDR PORT",
		Short: "write to an echo server, and count packets",
		Args:  positional,

		ValidArgsFunction: at(e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			req.Addr, req.Port = addrOf(args[0]), portOf(args[1])
			return show(e, c, req, func(counted control.RCPCounted) string {
				return printCounted(&counted)
			})
		},
	}
	rcpFlags(c, &req.Options)
	c.Flags().IntVar(&req.Writes, "writes", 1000, "write `N` pieces")
	Limit(c, 1, mostWrites, "writes")
	return e.jsonFlag(c)
}

// mostWrites is the maximum of --writes.
const mostWrites = 1 << 20

// printCounted formats the result of `rcp count`.
func printCounted(r *control.RCPCounted) string {
	return fmt.Sprintf("Sent and received %d bytes in %d writes, %s, rtt %s ms\n"+
		"Packets sent: %d (%d DAT, %d of them retransmitted, %d ACK, %d FIN)\n"+
		"Packets received: %d, %d of them useless\n  SHA-256 %s\n",
		r.Bytes, r.Writes, took(r.Seconds), millis(r.SRTT),
		r.Sent(), r.DAT, r.Again, r.ACK, r.FIN, r.Received, r.Dropped, r.SHA256)
}

func printRCP(list []control.RCPSocket) string {
	const head = "<Local          |         Remote|     State|  Sent|  Retrans|  Received|" +
		"  Unacked|  Held|  Unread"
	return table(head, list, func(k *control.RCPSocket) []string {
		remote := k.Remote.String()
		if k.State == "listening" {
			remote = "-"
		}
		return []string{
			k.Local.String(), remote, k.State, number(k.Sent()), number(k.Again),
			number(k.Received), strconv.Itoa(k.Unacked), strconv.Itoa(k.Held),
			strconv.Itoa(k.Unread),
		}
	})
}
