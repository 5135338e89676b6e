package repl

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func interfacesCommand(e *env) *cobra.Command {
	var stats int
	var zero bool
	c := &cobra.Command{
		Use:   "interfaces",
		Short: "list interfaces; -s: counters",
		Long: "Print a line for each interface, like `ip -s -br link`: name, state, address,\n" +
			"flags, MTU, packets and bytes received and sent, and drops. `li` prints\n" +
			"the course's table.",
		RunE: func(c *cobra.Command, _ []string) error {
			if zero {
				return e.done(c, control.Order(c.Context(), e.op, control.ClearCounters{}))
			}
			return show(e, c, control.Interfaces{}, func(list []control.Interface) string {
				return briefInterfaces(list, stats)
			})
		},
	}
	c.Flags().CountVarP(&stats, "stats", "s",
		"``add packets, bytes, errors and drops; -s -s: all counters")
	c.Flags().BoolVar(&zero, "clear", false, "set all counters to zero, also those of impair")
	return e.jsonFlag(c)
}

func neighborsCommand(e *env) *cobra.Command {
	var stats bool
	c := &cobra.Command{
		Use:   "neighbors",
		Short: "list neighbors; -s: their state",
		Long: "List the neighbors and any problems with them. -s adds each neighbor's state.\n" +
			"`ln` prints the course's table.",
		RunE: func(c *cobra.Command, _ []string) error {
			return show(e, c, control.Neighbors{}, func(list []control.Neighbor) string {
				return printNeighbors(list, stats)
			})
		},
	}
	c.Flags().BoolVarP(&stats, "stats", "s", false,
		"add state, time of the last packet, and packet counts")
	return e.jsonFlag(c)
}

func routesCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "routes",
		Short: "list the routes in use, like `ip route`",
		Long: "List the routes in use, like `ip route`. `proto kernel` marks the routes to\n" +
			"this node's own links, `static` those of the file or of `route add`, and `rip`\n" +
			"those that RIP learned, with their cost as metric. `lr` prints the course's\ntable.",
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := ask(e, c, control.Routes{})
			if err != nil {
				return err
			}
			if e.json(c) {
				return e.document(list)
			}
			faces, err := ask(e, c, control.Interfaces{})
			if err != nil {
				return err
			}
			return e.answer(c, list, fieldRoutes(list, faces))
		},
	})
}

func upCommand(e *env) *cobra.Command   { return linkCommand(e, "up", true) }
func downCommand(e *env) *cobra.Command { return linkCommand(e, "down", false) }

func linkCommand(e *env, verb string, up bool) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " IF",
		Short:             "take an interface " + verb + ", by name or number",
		ValidArgsFunction: at(e.interfaceNames),
		RunE: func(c *cobra.Command, args []string) error {
			req := control.SetLink{Iface: args[0], Up: up}
			return show(e, c, req, func(control.Interface) string { return "" })
		},
	}
}

func lossyForwardCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "lossyforward [PERCENT] [IF]",
		Short: "drop a share of forwarded packets",
		Long: "Drop PERCENT percent of the packets that this node forwards, in both\n" +
			"directions, on every interface or on one. Fractions like 0.5 are allowed.\n" +
			"Without PERCENT it shows the setting.",
		ValidArgsFunction: at(nil, e.interfaceNames),
		RunE: func(c *cobra.Command, args []string) error {
			return setLoss(e, c, args, 100)
		},
	})
}

func lossyCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:     "lossy [FRACTION] [IF]",
		Aliases: []string{"drop"},
		Short:   "like lossyforward, but 0.02 is 2 percent",
		Long: "Drop a FRACTION (0 to 1) of the packets that this node forwards, as\n" +
			"`lossyforward` does with a percentage. Without FRACTION it shows the setting.",
		ValidArgsFunction: at(nil, e.interfaceNames),
		RunE: func(c *cobra.Command, args []string) error {
			return setLoss(e, c, args, 1)
		},
	})
}

// setLoss executes lossyforward (in percent: whole is 100) and lossy (a fraction: whole is 1).
func setLoss(e *env, c *cobra.Command, args []string, whole float64) error {
	if len(args) == 0 {
		return show(e, c, control.Loss{}, printLoss)
	}
	share, err := strconv.ParseFloat(args[0], 64)
	if err != nil || math.IsNaN(share) || share < 0 || share > whole {
		return wrong(c, "%q is not a number from 0 to %v", args[0], whole)
	}
	req := control.SetLoss{Percent: share * (100 / whole)}
	if len(args) > 1 {
		req.Iface = args[1]
	}
	return show(e, c, req, func(list []control.LinkLoss) string { return printLossSet(req, list) })
}

// printCounters formats the counters of one direction like ip -s link, followed by each drop
// reason. With -ss each reason has its own line.
func printCounters(direction string, c control.Counters, stats int) string {
	var dropped uint64
	reasons := make([]string, 0, len(c.Drops))
	for _, d := range c.Drops {
		dropped += d.Packets
		reasons = append(reasons, fmt.Sprintf("%s %d", d.Reason, d.Packets))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "    %s: %12s %15s %8s %8s\n",
		direction, "packets", "bytes", "errors", "dropped")
	counts := fmt.Sprintf("        %12d %15d %8d %8d", c.Packets, c.Bytes, c.Errors, dropped)
	inline := counts + "  (" + strings.Join(reasons, ", ") + ")"
	switch {
	case stats > 1 || len(reasons) == 0:
		b.WriteString(counts + "\n")
		for _, d := range c.Drops {
			fmt.Fprintf(&b, "        %-34s %11d\n", d.Reason, d.Packets)
		}
	case len(inline) <= textWidth:
		b.WriteString(inline + "\n")
	default:
		b.WriteString(counts + "\n")
		b.WriteString(wrapped("        ("+strings.Join(reasons, ", ")+")", "         "))
	}
	if stats > 1 && direction == "RX" {
		fmt.Fprintf(&b, "        delivered %d, passed on %d\n", c.Delivered, c.Forwarded)
	}
	if c.Fragments > 0 {
		whole := map[string]string{"RX": "reassembled", "TX": "fragmented"}[direction]
		fmt.Fprintf(&b, "        fragments %d, %s %d\n", c.Fragments, whole, c.Fragmented)
	}
	return b.String()
}

func printDevice(i *control.Interface) string {
	if i.Device == nil {
		return ""
	}
	d := i.Device
	text := fmt.Sprintf("    beneath (%s): %d packets in, %d out",
		i.Offload, d.InPackets, d.OutPackets)
	if d.Oversize > 0 {
		text += fmt.Sprintf(", %d larger than the MTU", d.Oversize)
	}
	if d.Waited > 0 {
		text += fmt.Sprintf(", %d waited for the kernel", d.Waited)
	}
	return wrapped(text, "        ")
}

func printLoss(list []control.LinkLoss) string {
	return table("Iface|    Loss|  Dropped", list, func(l *control.LinkLoss) []string {
		return []string{l.Iface, percent(l.Percent), number(l.Dropped)}
	})
}

func printLossSet(set control.SetLoss, on []control.LinkLoss) string {
	text := "dropping " + percent(set.Percent) + " of forwarded packets"
	if set.Iface == "" {
		return text
	}
	name := set.Iface
	if _, err := strconv.Atoi(name); err == nil && len(on) == 1 {
		name = on[0].Iface // the argument was the interface's number
	}
	text += " on " + name
	return text
}

func percent(p float64) string { return strconv.FormatFloat(p, 'g', 6, 64) + "%" }

// printNeighbors formats the course's table, with a line below it for each neighbor with a problem.
// With stats it adds columns for the state of each neighbor.
func printNeighbors(list []control.Neighbor, stats bool) string {
	head := "Iface|          VIP|          UDPAddr"
	if stats {
		head += "|  State|  Since|  Heard|    In|   Out"
	}
	var notes strings.Builder
	text := table(head, list, func(n *control.Neighbor) []string {
		row := []string{n.Iface, n.Addr.String(), n.UDP, "-", "-", "-", "-", "-"}
		if isDiscovered(n.State) {
			row[3] = string(n.State)
		} else if n.State != "" {
			row = append(row[:3], string(n.State), ago(n.Since), "never", number(n.In),
				number(n.Out))
			if n.Heard >= 0 {
				row[5] = ago(n.Heard)
			}
		}
		notes.WriteString(neighborNote(n))
		if stats {
			return row
		}
		return row[:3]
	})
	return text + notes.String()
}

// isDiscovered reports whether the state is of neighbor discovery, which counts no packets.
func isDiscovered(s control.NeighborState) bool {
	return slices.Contains([]control.NeighborState{
		control.NeighborReachable, control.NeighborStale, control.NeighborDelay,
		control.NeighborProbe,
	}, s)
}

// neighborNote describes a neighbor's problem, or returns "" if there is none.
func neighborNote(n *control.Neighbor) string {
	why := ""
	if n.Problem != "" {
		why = ": " + n.Problem + inFile(n)
	}
	switch n.State {
	case "", control.NeighborUnknown, control.NeighborUp, control.NeighborReachable,
		control.NeighborStale, control.NeighborDelay, control.NeighborProbe:
		if why == "" {
			return ""
		}
		return wrapped("    "+n.Addr.String()+why, "    ")
	case control.NeighborRefused:
		why = ": its UDP port is closed" + inFile(n)
	case control.NeighborSilent, control.NeighborUnreachable, control.NeighborUnresolved:
	}
	return wrapped(fmt.Sprintf("    %v is %s for %s%s", n.Addr, n.State, ago(n.Since), why), "    ")
}

func inFile(n *control.Neighbor) string {
	if n.Line == "" {
		return ""
	}
	return " (" + n.Line + ")"
}

// ago formats a duration in one unit: 0.3s, 12s, 4m, 3h, 2d.
func ago(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(max(0, d).Seconds(), 'f', 1, 64) + "s"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 2*day:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strconv.Itoa(int(d/day)) + "d"
}

func neighborNews(e *control.NeighborChanged) string {
	n := &e.Neighbor
	who := fmt.Sprintf("Neighbor %v (%s via %s)", n.Addr, n.UDP, n.Iface)
	if e.From != "" {
		return fmt.Sprintf("%s has moved from %s", who, e.From)
	}
	why := inFile(n)
	if n.Problem != "" {
		why = ": " + n.Problem + why
	}
	switch n.State {
	case control.NeighborUp:
		if e.First {
			return who + " is up"
		}
		return fmt.Sprintf("%s is back after %s of being %s", who, ago(e.For), e.Was)
	case control.NeighborRefused:
		return who + " is unreachable: its UDP port is closed" + inFile(n) + ". Is the node up?"
	case control.NeighborSilent:
		return who + " is silent: it does not answer" + inFile(n)
	case control.NeighborUnreachable:
		return who + " is unreachable" + why
	case control.NeighborUnresolved:
		return who + " has no address yet" + why
	case control.NeighborUnknown, control.NeighborReachable, control.NeighborStale,
		control.NeighborDelay, control.NeighborProbe:
	}
	return who + " is " + string(n.State) + why
}
