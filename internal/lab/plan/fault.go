package plan

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// check reports what a part says against itself.
func (d *decoder) check(n *node, part interface{ Validate() error }) bool {
	err := part.Validate()
	if err == nil {
		return true
	}
	d.bad(n, strings.TrimPrefix(err.Error(), netem.ErrConfig.Error()+": "), "")
	return false
}

// wordError reports what netem says of words that begin so many characters before those that
// stand at n.
func (d *decoder) wordError(n *node, ahead int, err error) {
	var w *netem.WordError
	if !errors.As(err, &w) {
		d.bad(n, strings.TrimPrefix(err.Error(), netem.ErrConfig.Error()+": "), "")
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

// jitterOf is a jitter in the making.
type jitterOf struct {
	made       netem.Jitter
	overtake   bool
	correlates float64
}

var jitterKeys = []key[jitterOf]{
	{"uniform", "", func(d *decoder, n *node, j *jitterOf) {
		var w time.Duration
		d.time(n, "so much more or less", maxDelay, &w)
		j.made = netem.UniformJitter(w)
	}},
	{"normal", "", func(d *decoder, n *node, j *jitterOf) {
		var w time.Duration
		d.time(n, "a standard deviation", maxDelay, &w)
		j.made = netem.NormalJitter(w)
	}},
	{"overtake", "", func(d *decoder, n *node, j *jitterOf) { d.truth(n, &j.overtake) }},
	{"correlation", "", func(d *decoder, n *node, j *jitterOf) {
		d.share(n, "how alike successive packets are", &j.correlates)
	}},
}

// jitterKinds are the distributions.
var jitterKinds = []string{"uniform", "normal"}

// jitter reads how the delay varies.
func (d *decoder) jitter(n *node, l *link) {
	switch {
	case n.plain("none"):
		return
	case n.kind != mapping:
		var w time.Duration
		if d.time(n, "a jitter", maxDelay, &w); w > 0 {
			l.Jitter = netem.UniformJitter(w)
		}
		return
	}
	if !d.alternatives(n, "a jitter", jitterKinds) {
		return
	}
	var j jitterOf
	fill(d, n, "a jitter", jitterKeys, &j)
	l.Jitter, l.Overtaking, l.Correlation.Jitter = j.made, j.overtake, j.correlates
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

const maxListed = 4096

// loss reads a loss model.
func (d *decoder) loss(n *node) netem.Loss {
	switch n.kind {
	case mapping:
		return d.lossModel(n)
	case list:
		d.bad(n, "a list is not a loss", "at [17, 18], 1% or a mapping")
		return nil
	case scalar:
	}
	if n.plain("none") {
		return nil
	}
	first, rest, _ := strings.Cut(n.text, " ")
	inner := *n
	inner.text = strings.TrimSpace(rest)
	inner.place = n.within(n.text, len(n.text)-len(strings.TrimLeft(rest, " ")), inner.text, 0)
	switch {
	case first == "every" && inner.text != "":
		return d.every(&inner)
	case first == "at" && inner.text != "":
		return d.listedPackets(&inner, strings.FieldsFunc(inner.text, func(r rune) bool {
			return strings.ContainsRune("[], ", r)
		}))
	}
	m, ok := d.quantity(n, "a loss (none, 1%, every 1000, at [17, 18] or a model)", shareOf)
	if !ok {
		return nil
	}
	return d.uniformLoss(n, m.value)
}

func (d *decoder) uniformLoss(n *node, share float64) netem.Loss {
	switch {
	case share > 1:
		d.bad(n, n.text+" is more than all", "a loss from 0% to 100%")
		return nil
	case share == 0:
		return nil
	}
	return netem.UniformLoss(share)
}

// every reads a periodic loss.
func (d *decoder) every(n *node) netem.Loss {
	v, ok := d.number(n, "every how many packets", 1, math.MaxInt32)
	if !ok {
		return nil
	}
	return netem.PeriodicLoss{Every: uint64(v)}
}

// listedPackets reads the numbers of packets.
func (d *decoder) listedPackets(n *node, words []string) netem.Loss {
	var l netem.ListedLoss
	for _, w := range words {
		v, err := strconv.ParseUint(w, 10, 32)
		if err != nil || v == 0 {
			d.bad(n, quote(w)+" is not the number of a packet",
				"numbers from 1, such as at [17, 18]")
			return nil
		}
		l = append(l, v)
	}
	if len(l) == 0 || len(l) > maxListed {
		d.bad(n, strconv.Itoa(len(l))+" packets in a list", "1 to "+strconv.Itoa(maxListed))
		return nil
	}
	slices.Sort(l)
	return slices.Compact(l)
}

// lossKinds are the keys that say which model it is.
var lossKinds = []string{"every", "at", "gilbert", "netem", "share"}

var lossKeys = []key[netem.Loss]{
	{"every", "", func(d *decoder, n *node, l *netem.Loss) { *l = d.every(n) }},
	{"at", "", func(d *decoder, n *node, l *netem.Loss) {
		if n.kind != list {
			d.bad(n, d.shown(n)+" is not a list of packets", "a list, such as [17, 18]")
			return
		}
		words := make([]string, len(n.items))
		for i, item := range n.items {
			words[i] = item.text
		}
		*l = d.listedPackets(n, words)
	}},
	{"gilbert", "", func(d *decoder, n *node, l *netem.Loss) { *l = d.gilbert(n) }},
	{"netem", "", func(d *decoder, n *node, l *netem.Loss) {
		const ahead = "loss "
		text, ok := d.scalar(n, "the words of tc-netem(8) behind loss, such as 0.3% 25%")
		if !ok {
			return
		}
		cfg, err := netem.Parse(ahead + text)
		if err != nil {
			d.wordError(n, len(ahead), err)
			return
		}
		*l = cfg.Loss
	}},
	{"share", "", func(d *decoder, n *node, l *netem.Loss) {
		if m, ok := d.quantity(n, "a loss", shareOf); ok {
			*l = d.uniformLoss(n, m.value)
		}
	}},
}

// lossModel reads a mapping that names its model.
func (d *decoder) lossModel(n *node) netem.Loss {
	if !d.alternatives(n, "a loss", lossKinds) {
		return nil
	}
	var l netem.Loss
	fill(d, n, "a loss", lossKeys, &l)
	return l
}

// gilbertOf are the parameters of a Gilbert-Elliott model, in either of its forms.
type gilbertOf struct {
	mean, burst float64
	netem.GilbertElliott
}

var gilbertKeys = []key[gilbertOf]{
	{"mean", "", func(d *decoder, n *node, g *gilbertOf) { d.share(n, "a mean loss", &g.mean) }},
	{"burst", "", func(d *decoder, n *node, g *gilbertOf) {
		const most = 1e6
		m, ok := d.quantity(n, "how many packets a burst loses", pureNumber, packetCount)
		if ok && (m.value < 1 || m.value > most) {
			d.bad(n, n.text+" is out of range", "how many packets a burst loses, from 1 to 1000000")
			return
		}
		g.burst = m.value
	}},
	{"p", "", func(d *decoder, n *node, g *gilbertOf) { d.share(n, "good to bad", &g.P) }},
	{"r", "", func(d *decoder, n *node, g *gilbertOf) { d.share(n, "bad to good", &g.R) }},
	{"good", "", func(d *decoder, n *node, g *gilbertOf) { d.share(n, "a loss", &g.Good) }},
	{"bad", "", func(d *decoder, n *node, g *gilbertOf) { d.share(n, "a loss", &g.Bad) }},
}

// gilbert reads a Gilbert-Elliott model: by its mean and its bursts, or by its chances.
func (d *decoder) gilbert(n *node) netem.Loss {
	g := gilbertOf{}
	g.Bad = 1
	before := len(d.report.errs)
	if !fill(d, n, "a Gilbert-Elliott loss", gilbertKeys, &g) || len(d.report.errs) > before {
		return nil
	}
	means, chances := n.get("mean") != nil, n.get("p") != nil
	switch {
	case means == chances:
		d.bad(n, "a Gilbert-Elliott loss without its parameters",
			"{mean: 2%, burst: 5} or {p: 1%, r: 30%}")
		return nil
	case chances && n.get("burst") != nil:
		d.bad(n, "burst goes with mean", "{mean: 2%, burst: 5} or {p: 1%, r: 30%}")
		return nil
	case chances:
		if n.get("r") == nil {
			g.R = 1 - g.P
		}
		if !d.check(n, g.GilbertElliott) {
			return nil
		}
		return g.GilbertElliott
	case n.get("burst") == nil:
		g.burst = 1
	}
	if g.mean > g.burst/(1+g.burst) {
		d.bad(n, "no chain loses "+n.get("mean").text+" in bursts of "+
			strconv.FormatFloat(g.burst, 'g', -1, 64), "a smaller mean or longer bursts")
		return nil
	}
	return netem.Bursts(g.mean, g.burst)
}
