package repl

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// errNoReply: a ping got nothing back. The statistics have been printed.
var errNoReply = errors.New("no reply")

// Limits of ping, as iputils has them.
const (
	mostPingSize  = 65507
	leastInterval = 0.002
	scriptPings   = 4
)

func (s *Shell) ping() *cobra.Command {
	var (
		count, size int
		interval    float64
	)
	c := &cobra.Command{
		Use:   "ping ADDR",
		Short: "echo requests, until Ctrl-C; in a script 4",
		RunE: func(c *cobra.Command, args []string) error {
			addr, err := parseAddr(c, args[0])
			switch {
			case err != nil:
				return err
			case count < 0:
				return wrong(c, "a count of %d", count)
			case size < 0 || size > mostPingSize:
				return wrong(c, "size %d is not between 0 and %d", size, mostPingSize)
			case interval < leastInterval || interval > 3600:
				return wrong(c, "interval %v is not between %v and 3600 seconds",
					interval, leastInterval)
			}
			if count == 0 && s.script() {
				count = scriptPings
			}
			return s.runPing(c, control.Ping{
				Addr: addr, Count: count, Size: size,
				Interval: time.Duration(interval * float64(time.Second)),
			})
		},
	}
	c.Flags().IntVarP(&count, "count", "c", 0, "stop after `N`; 0: go on until Ctrl-C")
	c.Flags().Float64VarP(&interval, "interval", "i", 1, "`SECONDS` between requests")
	c.Flags().IntVarP(&size, "size", "s", 56, "`BYTES` of data in each")
	return s.jsonFlag(c)
}

func (s *Shell) runPing(c *cobra.Command, req control.Ping) error {
	asJSON, _ := c.Flags().GetBool("json")
	if !asJSON {
		s.screen.data(fmt.Sprintf("PING %s (%s) %d(%d) bytes of data.",
			req.Addr, req.Addr, req.Size, req.Size+28))
		req.Each = func(r control.Reply) { s.screen.data(printReply(r)) }
	}
	result, err := control.Ask(c.Context(), s.op, req)
	if err != nil {
		return failed(c, err)
	}
	if err := s.answer(c, result, printPing(result)); err != nil {
		return err
	}
	if result.Received == 0 && result.Sent > 0 && c.Context().Err() == nil {
		return failed(c, fmt.Errorf("%s: %w", req.Addr, errNoReply))
	}
	return nil
}

func printReply(r control.Reply) string {
	if r.Problem != "" {
		return fmt.Sprintf("From %s icmp_seq=%d %s", r.From, r.Seq, printable(r.Problem))
	}
	return fmt.Sprintf("%d bytes from %s: icmp_seq=%d ttl=%d time=%s ms",
		r.Size, r.From, r.Seq, r.TTL, pingMillis(r.RTT))
}

// pingMillis has three significant digits, as iputils prints a round trip.
func pingMillis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 10:
		return fmt.Sprintf("%.3f", ms)
	case ms < 100:
		return fmt.Sprintf("%.2f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}

func printPing(p control.PingResult) string {
	loss := 0.0
	if p.Sent > 0 {
		loss = 100 * float64(max(0, p.Sent-p.Received)) / float64(p.Sent)
	}
	faults := ""
	if p.Errors > 0 {
		faults = fmt.Sprintf("+%d errors, ", p.Errors)
	}
	text := fmt.Sprintf("\n--- %s ping statistics ---\n"+
		"%d packets transmitted, %d received, %s%.6g%% packet loss, time %dms\n",
		p.Addr, p.Sent, p.Received, faults, loss, p.Elapsed.Milliseconds())
	if p.Received > 0 {
		text += fmt.Sprintf("rtt min/avg/max/mdev = %.3f/%.3f/%.3f/%.3f ms\n",
			ms(p.Min), ms(p.Avg), ms(p.Max), ms(p.Mdev))
	}
	return text
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (s *Shell) traceroute() *cobra.Command {
	var hops, queries int
	c := &cobra.Command{
		Use:   "traceroute ADDR",
		Short: "the routers on the way",
		RunE: func(c *cobra.Command, args []string) error {
			addr, err := parseAddr(c, args[0])
			switch {
			case err != nil:
				return err
			case hops < 1 || hops > 255:
				return wrong(c, "%d hops are not between 1 and 255", hops)
			case queries < 1 || queries > 10:
				return wrong(c, "%d queries are not between 1 and 10", queries)
			}
			req := control.Traceroute{Addr: addr, MaxHops: hops, Queries: queries}
			return s.runTraceroute(c, req)
		},
	}
	c.Flags().IntVarP(&hops, "max-hops", "m", 30, "give up after `N` hops")
	c.Flags().IntVarP(&queries, "queries", "q", 3, "`N` probes a hop")
	return s.jsonFlag(c)
}

func (s *Shell) runTraceroute(c *cobra.Command, req control.Traceroute) error {
	asJSON, _ := c.Flags().GetBool("json")
	if !asJSON {
		s.screen.data(fmt.Sprintf("traceroute to %s (%s), %d hops max, 60 byte packets",
			req.Addr, req.Addr, req.MaxHops))
		req.Each = func(h control.Hop) { s.screen.data(printHop(h)) }
	}
	hops, err := control.Ask(c.Context(), s.op, req)
	if err != nil {
		return failed(c, err)
	}
	if asJSON {
		return s.document(hops)
	}
	return nil
}

func printHop(h control.Hop) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%2d ", h.TTL)
	var last netip.Addr
	for _, r := range h.Replies {
		if !r.From.IsValid() {
			b.WriteString(" *")
			continue
		}
		if r.From != last {
			fmt.Fprintf(&b, " %s", r.From)
			last = r.From
		}
		fmt.Fprintf(&b, "  %s ms", pingMillis(r.RTT))
		if r.Problem != "" {
			fmt.Fprintf(&b, " (%s)", printable(r.Problem))
		}
	}
	return b.String()
}
