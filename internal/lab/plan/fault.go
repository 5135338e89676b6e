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
			{"correlation", "", readShare(correlationText, correlation)},
		})
	})
}

func (l *link) corruptKeys() []key {
	const mostBits = 1024
	return []key{
		{"share", "", readShare("the share of packets that are corrupted", &l.Corrupt.Share)},
		{"bits", "1", readCount("a number of bits", mostBits, &l.Corrupt.Bits)},
		{"where", "anywhere", func(d *decoder, n *node) {
			words := []string{"anywhere", "headers", "payload"}
			if w, ok := d.word(n, "a part of a packet", words); ok {
				l.Corrupt.Where = netem.Region(slices.Index(words, w))
			}
		}},
		{"correlation", "", readShare(correlationText, &l.Correlation.Corrupt)},
	}
}

func (l *link) readCorrupt(d *decoder, n *node) {
	if n.kind != mapping {
		l.Corrupt.Bits = 1
		readShare("the share of packets that are corrupted", &l.Corrupt.Share)(d, n)
	} else if d.fill(n, "a corruption", l.corruptKeys()) && n.get("share") == nil {
		d.bad(n, "the corruption has no share", "share: 1%")
	}
}

func (l *link) reorderKeys() []key {
	const mostGap = 1 << 20
	return []key{
		{"share", "", readShare("the share of packets that are reordered", &l.Reorder.Share)},
		{"late", "", readTime("an extra delay", maxDelay, &l.Reorder.Late)},
		{"gap", "", readCount("a number of packets", mostGap, &l.Reorder.Gap)},
		{"correlation", "", readShare(correlationText, &l.Correlation.Reorder)},
	}
}

func (l *link) readReorder(d *decoder, n *node) {
	if n.kind != mapping {
		readShare("the share of packets that are reordered", &l.Reorder.Share)(d, n)
	} else if d.fill(n, "a reordering", l.reorderKeys()) && n.get("share") == nil {
		d.bad(n, "the reordering has no share", "share: 25%")
	}
	if l.Reorder.Share > 0 && l.Delay == 0 && l.Reorder.Late == 0 {
		l.Reorder.Late = netem.Lateness
	}
}
