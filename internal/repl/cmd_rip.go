package repl

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func ripCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "rip",
		Short: "show RIP neighbors, routes, bad messages",
		RunE: func(c *cobra.Command, _ []string) error {
			return showRIP(e, c)
		},
	})
}

func showRIP(e *env, c *cobra.Command) error {
	return show(e, c, control.RIP{}, func(info control.RIPInfo) string { return printRIP(&info) })
}

func printRIP(info *control.RIPInfo) string {
	if info.Dialect == "" {
		return "This node does not run RIP.\n"
	}
	text := printRIPTimers(info) + "\n" + printRIPInterfaces(info.Interfaces) + "\n" +
		printRIPNeighbors(info.Neighbors) + "\n" + printRIPRoutes(info.Routes) + "\n" +
		printRIPMessages(info)
	if info.RIPng != nil {
		text += "\n" + printRIP(info.RIPng)
	}
	return text
}

func printRIPTimers(info *control.RIPInfo) string {
	name := "the course's RIP, IP protocol 200"
	switch info.Dialect {
	case "rip2":
		name = "RIPv2, UDP port 520"
	case "ripng":
		name = "RIPng, UDP port 521"
	}
	t := &info.Timers
	period := t.Periodic.String()
	if t.Offset > 0 {
		period += " ± " + t.Offset.Round(time.Millisecond).String()
	}
	text := fmt.Sprintf("updates every %s, the next in %s; timeout %v, garbage %v",
		period, brief(info.NextUpdate), t.Timeout, t.Garbage)
	if t.TriggerMax > 0 {
		text += fmt.Sprintf("; triggered updates after %v to %v", t.TriggerMin, t.TriggerMax)
	}
	if t.HoldDown > 0 {
		text += fmt.Sprintf("; hold-down %v", t.HoldDown)
	}
	return name + "\n" + wrapped(text, "")
}

func printRIPInterfaces(list []control.RIPInterface) string {
	const head = "<Iface| State| Cost|  Send|  Receive|  Auth|    In|   Out|  Entries out"
	return table(head, list, func(f *control.RIPInterface) []string {
		state := "up"
		if !f.Up {
			state = "down"
		}
		send := orDash(f.Send)
		if f.Passive {
			send = "passive"
		}
		return []string{
			f.Iface, state, strconv.Itoa(f.Cost), send, orDash(f.Receive), orDash(f.Auth),
			number(f.In), number(f.Out), number(f.Entries),
		}
	})
}

func printRIPNeighbors(list []control.RIPNeighbor) string {
	const head = "<Neighbor     |  Iface|  Version|  Heard|  Routes|  Requests|  Responses|" +
		"  Refused"
	return table(head, list, func(n *control.RIPNeighbor) []string {
		version, heard := "-", "never"
		if n.Version > 0 {
			version = strconv.Itoa(n.Version)
		}
		if n.Silent >= 0 {
			heard = brief(n.Silent)
		}
		return []string{
			n.Addr.String(), n.Iface, version, heard, strconv.Itoa(n.Routes),
			number(n.Requests), number(n.Responses), number(n.Refused),
		}
	})
}

func printRIPRoutes(list []control.RIPRoute) string {
	const head = "<Prefix         |     Next hop|         From|  Iface|  Metric|  Tag|    Age|" +
		"   Left"
	return table(head, list, func(r *control.RIPRoute) []string {
		hop, from, left := "connected", "ours", "-"
		if r.NextHop.IsValid() {
			hop = r.NextHop.String()
		}
		switch {
		case r.From.IsValid():
			from = r.From.String()
		case r.Left >= 0:
			hop, from = "none", "-"
		case r.Iface == "":
			hop = "originated"
		}
		if r.Left >= 0 {
			left = brief(r.Left)
		}
		return []string{
			r.Prefix.String(), hop, from, orDash(r.Iface), strconv.Itoa(r.Cost),
			strconv.Itoa(r.Tag), brief(r.Age), left,
		}
	})
}

func printRIPMessages(info *control.RIPInfo) string {
	m := &info.Messages
	var b strings.Builder
	fmt.Fprintf(&b, "in:  %d requests, %d responses with %d entries\n",
		m.RequestsIn, m.ResponsesIn, m.EntriesIn)
	fmt.Fprintf(&b, "out: %d requests, %d responses with %d entries, %d of them triggered\n",
		m.RequestsOut, m.ResponsesOut, m.EntriesOut, m.TriggeredOut)
	if m.Expired > 0 {
		fmt.Fprintf(&b, "expired: %d routes\n", m.Expired)
	}
	for _, r := range info.Refused {
		fmt.Fprintf(&b, "refused: %d %s\n", r.Packets, r.Reason)
	}
	return b.String()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func brief(d time.Duration) string {
	if d >= time.Minute {
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
}
