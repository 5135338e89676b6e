package figure

import (
	"fmt"
	"math"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
)

// maxNamed limits the flows or curves that a finding names.
const maxNamed = 3

func listed(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// meanOver returns the mean over time of a step function, and how often the function falls by more
// than a fifth.
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

// sweepFinding describes, for each curve, how the first metric of a sweep changes along the axis.
func (c *compared) sweepFinding() string {
	if c.facet != "" || len(c.metrics) == 0 {
		return ""
	}
	m := c.metrics[0]
	list := c.series(m, "")
	if len(list) == 0 || len(list) > maxNamed {
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
	return m.Definition().Titled() + " " + listed(parts)
}
