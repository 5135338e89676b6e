package plan

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// check reports what a part says against itself.
func (d *decoder) check(n *node, part interface{ Validate() error }) bool {
	err := part.Validate()
	if err == nil {
		return true
	}
	d.bad(n, plainly(err), "")
	return false
}

// plainly is an error of netem's without its name.
func plainly(err error) string {
	return strings.TrimPrefix(err.Error(), netem.ErrConfig.Error()+": ")
}

// wordError reports what netem says of words that begin so many characters before those that
// stand at n.
func (d *decoder) wordError(n *node, ahead int, err error) {
	var w *netem.WordError
	if !errors.As(err, &w) {
		d.bad(n, plainly(err), "")
		return
	}
	d.report.add(n.within(w.Text, w.At, w.Word, ahead), w.Message(), w.Want)
}

// within is the place of a word of a scalar's text, of which the first characters ahead do not
// stand there.
func (n *node) within(text string, at int, word string, ahead int) place {
	p := n.place
	if strings.Contains(n.text, "\n") || n.text != "" && n.width < utf8.RuneCountInString(n.text) {
		return p
	}
	p.col += utf8.RuneCountInString(text[:at]) - ahead
	if n.quoted {
		p.col++
	}
	p.width = max(1, utf8.RuneCountInString(word))
	return p
}

// correlated reads a share, or one with a correlation.
func (d *decoder) correlated(n *node, what string, share, correlation *float64) {
	if n.plain("none") {
		return
	}
	if n.kind != mapping {
		d.share(n, what, share)
		return
	}
	type two struct{ share, correlation float64 }
	var v two
	fill(d, n, "a share", []key[two]{
		{"share", "", func(d *decoder, n *node, v *two) { d.share(n, what, &v.share) }},
		{"correlation", "", func(d *decoder, n *node, v *two) {
			d.share(n, "how alike successive packets are", &v.correlation)
		}},
	}, &v)
	*share, *correlation = v.share, v.correlation
}

var corruptKeys = []key[link]{
	{"share", "", func(d *decoder, n *node, l *link) {
		d.share(n, "what is damaged", &l.Corrupt.Share)
	}},
	{"bits", "1", func(d *decoder, n *node, l *link) {
		const most = 1024
		d.count(n, "how many bits", most, &l.Corrupt.Bits)
	}},
	{"where", "anywhere", func(d *decoder, n *node, l *link) {
		words := []string{"anywhere", "headers", "payload"}
		if w, ok := d.word(n, "a part of a packet", words); ok {
			l.Corrupt.Where = netem.Region(slices.Index(words, w))
		}
	}},
	{"correlation", "", func(d *decoder, n *node, l *link) {
		d.share(n, "how alike successive packets are", &l.Correlation.Corrupt)
	}},
}

// corrupt reads the damage.
func (d *decoder) corrupt(n *node, l *link) {
	switch {
	case n.plain("none"):
	case n.kind == mapping:
		if fill(d, n, "a corruption", corruptKeys, l) && n.get("share") == nil {
			d.bad(n, "a corruption without a share", "share: 1%")
		}
	default:
		l.Corrupt.Bits = 1
		d.share(n, "what is damaged", &l.Corrupt.Share)
	}
}

var reorderKeys = []key[link]{
	{"share", "", func(d *decoder, n *node, l *link) {
		d.share(n, "what leaves its turn", &l.Reorder.Share)
	}},
	{"late", "", func(d *decoder, n *node, l *link) {
		d.time(n, "how late it may be", maxDelay, &l.Reorder.Late)
	}},
	{"gap", "", func(d *decoder, n *node, l *link) {
		const most = 1 << 20
		d.count(n, "how many packets apart", most, &l.Reorder.Gap)
	}},
	{"correlation", "", func(d *decoder, n *node, l *link) {
		d.share(n, "how alike successive packets are", &l.Correlation.Reorder)
	}},
}

// reorder reads what leaves its turn.
func (d *decoder) reorder(n *node, l *link) {
	switch {
	case n.plain("none"):
		return
	case n.kind == mapping:
		if fill(d, n, "a reordering", reorderKeys, l) && n.get("share") == nil {
			d.bad(n, "a reordering without a share", "share: 25%")
		}
	default:
		d.share(n, "what leaves its turn", &l.Reorder.Share)
	}
	if l.Reorder.Share > 0 && l.Delay == 0 && l.Reorder.Late == 0 {
		l.Reorder.Late = netem.Lateness
	}
}
