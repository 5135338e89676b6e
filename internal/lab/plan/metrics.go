package plan

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/mistake"
	"github.com/tidepool-net/tidepool/internal/spell"
)

// metrics reads which metrics a table shows: a list of their names, or one.
func (d *decoder) metrics(n *node) []result.Metric {
	items := []*node{n}
	switch n.kind {
	case list:
		items = n.items
	case mapping:
		d.bad(n, "a mapping is not what belongs here", metricsWant)
		return nil
	case scalar:
	}
	if len(items) == 0 {
		d.bad(n, "a table without columns", metricsWant+", or the line left out")
		return nil
	}
	known := result.Names()
	var chosen []result.Metric
	for _, item := range items {
		name, ok := d.scalar(item, metricsWant)
		m := result.Metric(name)
		switch {
		case !ok:
		case !slices.Contains(known, name):
			d.bad(item, mistake.Quote(name)+" is no metric"+spell.DidYouMean(name, known),
				"one of `node lab metrics`")
		case slices.Contains(chosen, m):
			d.bad(item, mistake.Quote(name)+" is there already", "each metric once")
		default:
			chosen = append(chosen, m)
		}
	}
	return chosen
}

const metricsWant = "names of metrics, such as [completion, goodput]"
