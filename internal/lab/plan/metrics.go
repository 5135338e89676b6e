package plan

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/mistake"
	"github.com/tidepool-net/tidepool/internal/spell"
)

// readMetrics reads which metrics a table shows: a list of their names, or one.
func (x *draft) readMetrics(d *decoder, n *node) {
	items := []*node{n}
	switch n.kind {
	case list:
		items = n.items
	case mapping:
		d.bad(n, "a mapping is not what belongs here", metricsWant)
		return
	case scalar:
	}
	if len(items) == 0 {
		d.bad(n, "a table without columns", metricsWant+", or the line left out")
		return
	}
	for _, item := range items {
		name, ok := d.scalar(item, metricsWant)
		m, known := result.Find(name)
		switch {
		case !ok:
		case !known:
			d.bad(item, mistake.Quote(name)+" is no metric"+spell.DidYouMean(name, result.Names()),
				"one of `node lab metrics`")
		case slices.Contains(x.Metrics, m.Name):
			d.bad(item, mistake.Quote(name)+" is there already", "each metric once")
		default:
			x.Metrics = append(x.Metrics, m.Name)
		}
	}
}

const metricsWant = "names of metrics, such as [completion, goodput]"
