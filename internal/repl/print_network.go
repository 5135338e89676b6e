package repl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
)

// printCounters is one direction in the shape of ip -s link, each drop reason by name behind it;
// where reasons matter most, a line each.
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

// printDevice is what the device beneath an interface has counted.
func printDevice(i *control.Interface) string {
	if i.Device == nil {
		return ""
	}
	d := i.Device
	text := fmt.Sprintf("    beneath (%s): %d packets in, %d out",
		i.Offload, d.InPackets, d.OutPackets)
	if d.Oversize > 0 {
		text += fmt.Sprintf(", %d came larger than the MTU", d.Oversize)
	}
	if d.Waited > 0 {
		text += fmt.Sprintf(", %d waited for the kernel", d.Waited)
	}
	return wrapped(text, "        ")
}

func printLoss(list []control.LinkLoss) string {
	rows := make([][]string, 0, len(list))
	for _, l := range list {
		rows = append(rows, []string{
			l.Iface, percent(l.Percent), strconv.FormatUint(l.Dropped, 10),
		})
	}
	return table([]column{{"Iface", 5, 0}, {"Loss", 8, 2}, {"Dropped", 9, 2}}, rows)
}

func printLossSet(set control.SetLoss, on []control.LinkLoss) string {
	text := "dropping " + percent(set.Percent) + " of forwarded packets"
	if set.Iface == "" {
		return text
	}
	name := set.Iface
	if _, err := strconv.Atoi(name); err == nil && len(on) == 1 {
		name = on[0].Iface // it was given by number
	}
	text += " on " + name
	return text
}

// percent writes a share without the noise of binary fractions.
func percent(p float64) string { return strconv.FormatFloat(p, 'g', 6, 64) + "%" }
