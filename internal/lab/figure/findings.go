package figure

import (
	"fmt"
	"math"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
)

// mostSaid is how many flows or curves a finding speaks of.
const mostSaid = 3

// listed joins what is said of several things.
func listed(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// meanOver is the mean over time of what is a step at each point, and how often it fell by more
// than a fifth at once.
func meanOver(list []chart.Point, end float64) (mean float64, falls int) {
	sum, span := 0.0, 0.0
	for i, p := range list {
		until := end
		if i+1 < len(list) {
			until = list[i+1].X
		}
		if d := until - p.X; d > 0 && !infinite(p.Y) {
			sum, span = sum+d*p.Y, span+d
		}
		if i > 0 && p.Y < 0.8*list[i-1].Y {
			falls++
		}
	}
	if span == 0 {
		return math.NaN(), falls
	}
	return sum / span, falls
}

// windowFinding says how large windows are, and of a single one how often it falls.
func (v *view) windowFinding(flows []*flow) string {
	if len(flows) > mostSaid {
		return ""
	}
	var parts []string
	for _, f := range flows {
		cwnd := f.windows(1)
		u := f.segment(most(cwnd))
		mean, falls := meanOver(cwnd, v.end)
		if infinite(mean) {
			return ""
		}
		said := digits(u.of(mean)) + " " + u.name + " in the mean"
		if len(flows) > 1 {
			parts = append(parts, f.title()+" has "+said)
			continue
		}
		parts = append(parts, said+", "+digits(u.of(most(cwnd)))+" at the most")
		if falls > 0 {
			parts[0] += ", " + plural(falls, "fall")
		}
	}
	return listed(parts)
}

// quantile is a value of sorted ones.
func quantile(sorted []float64, share float64) float64 {
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// rttFinding says how long the round trips of a few flows are.
func rttFinding(flows []*flow) string {
	if len(flows) > mostSaid {
		return ""
	}
	var parts []string
	for _, f := range flows {
		list := roundTrips(f)
		if len(list) == 0 {
			continue
		}
		if len(flows) == 1 {
			return "half are below " + amount(quantile(list, 0.5), "s") + ", 95 % below " +
				amount(quantile(list, 0.95), "s")
		}
		parts = append(parts, amount(quantile(list, 0.5), "s")+" for "+f.title())
	}
	return "the median is " + listed(parts)
}

// sequenceFinding says how much a few flows retransmitted.
func sequenceFinding(flows []*flow) string {
	if len(flows) > mostSaid {
		return ""
	}
	var parts []string
	for _, f := range flows {
		if len(f.Samples) == 0 || f.MSS <= 0 {
			return ""
		}
		last := &f.Samples[len(f.Samples)-1]
		sent := float64(last.BytesSent) / float64(f.MSS)
		if sent < 1 {
			return ""
		}
		share := digits(100*float64(last.Retransmits)/sent) + " %"
		if len(flows) == 1 {
			return fmt.Sprintf("%s retransmitted, %s of all",
				plural(int(last.Retransmits), "segment"),
				share)
		}
		parts = append(parts, share+" of "+f.title()+"'s")
	}
	return listed(parts) + " segments are retransmitted"
}

// flowBits is what a flow took of its link, in bits.
type flowBits struct {
	flow *flow
	bits float64
}

// throughputFinding says what flows took of what there was.
func (v *view) throughputFinding(took []flowBits, capacity []chart.Point) string {
	sum := 0.0
	for _, t := range took {
		sum += t.bits / v.end
	}
	mean, _ := meanOver(capacity, v.end)
	if len(took) == 0 || sum == 0 {
		return ""
	}
	who := took[0].flow.title() + " takes "
	if len(took) > 1 {
		who = fmt.Sprintf("%d flows take ", len(took))
	}
	if infinite(mean) || mean <= 0 {
		return who + amount(sum, "bit/s")
	}
	return who + amount(sum, "bit/s") + " of " + amount(mean, "bit/s") + ", " +
		digits(min(100, 100*sum/mean)) + " %"
}

// sweepFinding says what the first metric of a sweep does along its axis, curve by curve.
func (c *compared) sweepFinding() string {
	if c.facet != "" || len(c.metrics) == 0 {
		return ""
	}
	m := c.metrics[0]
	list := c.series(m, "")
	if len(list) == 0 || len(list) > mostSaid {
		return ""
	}
	base := m.Definition().Unit
	var parts []string
	for _, s := range list {
		groups := c.ordered(s.groups)
		_, from, _, ok := middleOf(groups[0].Numbers[m])
		_, to, _, well := middleOf(groups[len(groups)-1].Numbers[m])
		if !ok || !well || len(groups) < 2 {
			return ""
		}
		said := fmt.Sprintf("from %s to %s", amount(from, base), amount(to, base))
		if base == "packets" {
			said = fmt.Sprintf("from %.0f to %.0f", from, to)
		}
		if len(list) > 1 {
			said += " (" + s.name + ")"
		}
		parts = append(parts, said)
	}
	return title(m) + " " + listed(parts)
}
