package plan

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/netem"
)

func readCorrelated(what string, share, correlation *float64) reading {
	return unlessNone(func(d *decoder, n *node) {
		if n.kind != mapping {
			readShare(what, share)(d, n)
			return
		}
		d.fill(n, "a share", []key{
			{"share", "", readShare(what, share)},
			{"correlation", "", readShare(alikeness, correlation)},
		})
	})
}

func (l *link) corruptKeys() []key {
	const mostBits = 1024
	return []key{
		{"share", "", readShare("what is damaged", &l.Corrupt.Share)},
		{"bits", "1", readCount("how many bits", mostBits, &l.Corrupt.Bits)},
		{"where", "anywhere", func(d *decoder, n *node) {
			words := []string{"anywhere", "headers", "payload"}
			if w, ok := d.word(n, "a part of a packet", words); ok {
				l.Corrupt.Where = netem.Region(slices.Index(words, w))
			}
		}},
		{"correlation", "", readShare(alikeness, &l.Correlation.Corrupt)},
	}
}

func (l *link) readCorrupt(d *decoder, n *node) {
	if n.kind != mapping {
		l.Corrupt.Bits = 1
		readShare("what is damaged", &l.Corrupt.Share)(d, n)
	} else if d.fill(n, "a corruption", l.corruptKeys()) && n.get("share") == nil {
		d.bad(n, "a corruption without a share", "share: 1%")
	}
}

func (l *link) reorderKeys() []key {
	const mostGap = 1 << 20
	return []key{
		{"share", "", readShare("what leaves its turn", &l.Reorder.Share)},
		{"late", "", readTime("how late it may be", maxDelay, &l.Reorder.Late)},
		{"gap", "", readCount("how many packets apart", mostGap, &l.Reorder.Gap)},
		{"correlation", "", readShare(alikeness, &l.Correlation.Reorder)},
	}
}

func (l *link) readReorder(d *decoder, n *node) {
	if n.kind != mapping {
		readShare("what leaves its turn", &l.Reorder.Share)(d, n)
	} else if d.fill(n, "a reordering", l.reorderKeys()) && n.get("share") == nil {
		d.bad(n, "a reordering without a share", "share: 25%")
	}
	if l.Reorder.Share > 0 && l.Delay == 0 && l.Reorder.Late == 0 {
		l.Reorder.Late = netem.Lateness
	}
}
