package repl

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func rcpCommand(e *env) *cobra.Command {
	return overUDP[control.RCPSocket](e, &transport[control.RCPSocket]{
		name: "rcp", short: "RCP, the sliding fence: echo, count",
		long: "RCP is a reliable transport with a sliding fence, over UDP ports; it comes from\n" +
			"document 000 (see README.md). `rcp` alone lists its sockets: sent, retransmitted\n" +
			"and unacknowledged packets, packets held behind a gap, and bytes to read.\n" +
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

type rcpFlags struct {
	control.RCPOptions
	seconds float64
}

const mostWidth = 1024

func (o *rcpFlags) of(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.Width, "width", 32, "keep `PACKETS` in the fence, as at the other end")
	f.BoolVar(&o.Window, "window", false, "use the classic window: only contiguous data counts")
	f.BoolVar(&o.Timer, "timer", false, "retransmit by RFC 6298, not every 10 ms")
	f.Float64Var(&o.seconds, "timeout", 3, "close after `SECONDS` of silence")
}

func (o *rcpFlags) options(c *cobra.Command) (control.RCPOptions, error) {
	switch {
	case o.Width < 1 || o.Width > mostWidth:
		return o.RCPOptions, wrong(c, "--width %d: must be 1 to %d", o.Width, mostWidth)
	case !(o.seconds > 0.01 && o.seconds <= mostSeconds):
		return o.RCPOptions, wrong(c, "--timeout %v: must be more than 0.01 seconds", o.seconds)
	}
	o.Timeout = time.Duration(o.seconds * float64(time.Second))
	return o.RCPOptions, nil
}

func rcpEchoCommand(e *env) *cobra.Command {
	var o rcpFlags
	c := &cobra.Command{
		Use:   "echo PORT",
		Short: "run an echo server",
		Args:  positional,
		RunE: func(c *cobra.Command, args []string) error {
			options, err := o.options(c)
			if err != nil {
				return err
			}
			req := control.RCPEcho{Port: portOf(args[0]), Options: options}
			return show(e, c, req, func(at control.RCPPort) string {
				return fmt.Sprintf("Echoing RCP on UDP port %d", at.Local.Port())
			})
		},
	}
	o.of(c)
	return e.jsonFlag(c)
}

func rcpCountCommand(e *env) *cobra.Command {
	var o rcpFlags
	var writes int
	c := &cobra.Command{
		Use:   "count ADDR PORT",
		Short: "write to an echo server, and count packets",
		Args:  positional,

		ValidArgsFunction: at(e.neighborAddrs),
		RunE: func(c *cobra.Command, args []string) error {
			if writes < 1 || writes > mostWrites {
				return wrong(c, "--writes %d: must be 1 to %d", writes, mostWrites)
			}
			options, err := o.options(c)
			if err != nil {
				return err
			}
			req := control.RCPCount{
				Addr: addrOf(args[0]), Port: portOf(args[1]), Writes: writes, Options: options,
			}
			return show(e, c, req, func(counted control.RCPCounted) string {
				return printCounted(&counted)
			})
		},
	}
	o.of(c)
	c.Flags().IntVar(&writes, "writes", 1000, "write `N` pieces")
	return e.jsonFlag(c)
}

// mostWrites is the maximum number of writes of the measuring client.
const mostWrites = 1 << 20

// printCounted formats the document's three lines.
func printCounted(r *control.RCPCounted) string {
	return fmt.Sprintf("Sent and received %d bytes in %d writes, %s, rtt %s ms\n"+
		"Packets sent: %d (%d DAT, %d of them retransmitted, %d ACK, %d FIN)\n"+
		"Packets received: %d, %d of them useless\n  SHA-256 %s\n",
		r.Bytes, r.Writes, took(r.Seconds), millis(r.SRTT),
		r.Sent(), r.DAT, r.Again, r.ACK, r.FIN, r.Received, r.Dropped, r.SHA256)
}

func printRCP(list []control.RCPSocket) string {
	columns := []column{
		{"Local", 15, leftmost},
		{"Remote", 15, 2},
		{"State", 10, 2},
		{"Sent", 6, 2},
		{"Again", 6, 2},
		{"Received", 8, 2},
		{"Unacked", 7, 2},
		{"Held", 4, 2},
		{"Unread", 6, 2},
	}
	var rows [][]string
	for i := range list {
		k := &list[i]
		remote := k.Remote.String()
		if k.State == "listening" {
			remote = "-"
		}
		rows = append(rows, []string{
			k.Local.String(), remote, k.State, number(k.Sent()), number(k.Again),
			number(k.Received), strconv.Itoa(k.Unacked), strconv.Itoa(k.Held),
			strconv.Itoa(k.Unread),
		})
	}
	return table(columns, rows)
}
