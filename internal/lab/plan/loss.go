package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

const maxListed = 4096

func readLoss(d *decoder, n *node) netem.Loss {
	switch n.kind {
	case mapping:
		return readLossModel(d, n)
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
	ahead := strings.TrimSuffix(n.text, strings.TrimLeft(rest, " "))
	inner.place = n.within(utf8.RuneCountInString(ahead), inner.text)
	switch {
	case first == "every" && inner.text != "":
		var every uint64
		if readEvery(&every)(d, &inner); every == 0 {
			return nil
		}
		return netem.PeriodicLoss{Every: every}
	case first == "at" && inner.text != "":
		return listedPackets(d, &inner, strings.FieldsFunc(inner.text, func(r rune) bool {
			return strings.ContainsRune("[], ", r)
		}))
	}
	m, ok := d.quantity(n, "a loss (none, 1%, every 1000, at [17, 18] or a model)", result.Percent)
	switch {
	case !ok || m.value == 0:
		return nil
	case m.value > 1:
		d.bad(n, n.text+" is above 100%", "a loss from 0% to 100%")
		return nil
	}
	return netem.UniformLoss(m.value)
}

func readEvery(to *uint64) reading {
	return readNumber("a number of packets", 1, math.MaxInt32, to)
}

func listedPackets(d *decoder, n *node, words []string) netem.Loss {
	var l netem.ListedLoss
	for _, w := range words {
		v, err := strconv.ParseUint(w, 10, 32)
		if err != nil || v == 0 {
			d.bad(n, diagnostic.Quote(w)+" is not a packet number",
				"numbers from 1, such as at [17, 18]")
			return nil
		}
		l = append(l, v)
	}
	if len(l) == 0 || len(l) > maxListed {
		d.bad(n, strconv.Itoa(len(l))+" packets in a list",
			"1 to "+strconv.Itoa(maxListed)+" packets")
		return nil
	}
	slices.Sort(l)
	return slices.Compact(l)
}

type lossDraft struct {
	netem.Loss
	share, correlation float64
	every, first       uint64
	window             netem.Window
	windows            []netem.Window
	repeat             time.Duration
}

// lossKinds are the keys that name a loss model. A single window has the key "from" instead.
var lossKinds = []string{
	"share", "every", "at", "bytes", "gilbert", "states", "windows", "on_off", "netem",
}

func (l *lossDraft) keys() []key {
	model := func(read func(*decoder, *node) netem.Loss) reading {
		return func(d *decoder, n *node) { l.Loss = read(d, n) }
	}
	return []key{
		{"share", "", readShare("a loss", &l.share)},
		{"correlation", "", readShare(correlationText, &l.correlation)},
		{"from", "", readTime("a start time", maxSpan, &l.window.From)},
		{"to", "", readTime("an end time", maxSpan, &l.window.To)},
		{"every", "", readEvery(&l.every)},
		{"first", "", readNumber("the number of a packet", 1, math.MaxInt32, &l.first)},
		{"at", "", func(d *decoder, n *node) {
			if n.kind != list {
				d.bad(n, n.shown()+" is not a list", "a list of packets, such as [17, 18]")
				return
			}
			words := make([]string, len(n.items))
			for i, item := range n.items {
				words[i] = item.text
			}
			l.Loss = listedPackets(d, n, words)
		}},
		{"bytes", "", model(listedBytes)},
		{"gilbert", "", model(readGilbert)},
		{"states", "", model(readStates)},
		{"windows", "", func(d *decoder, n *node) { l.windows = readWindows(d, n) }},
		{"repeat", "", readTime("the period of the windows", maxSpan, &l.repeat)},
		{"on_off", "", model(readOnOff)},
		{"netem", "", model(lossWords)},
	}
}

// lossKeys lists the keys that are allowed together with the key that names the model.
var lossKeys = map[string][]string{
	"share": {"correlation"}, "every": {"first"}, "windows": {"repeat"},
	"from": {"to", "share", "repeat"},
}

func readLossModel(d *decoder, n *node) netem.Loss {
	model := "from"
	if n.get(model) == nil {
		if model = d.alternative(n, "a loss", lossKinds); model == "" {
			return nil
		}
	}
	var l lossDraft
	keys := l.keys()
	d.fill(n, "a loss", keys)
	allowed := append([]string{model}, lossKeys[model]...)
	for _, p := range n.pairs {
		k := p.key.text
		if slices.Contains(names(keys), k) && !slices.Contains(allowed, k) {
			d.bad(p.key, diagnostic.Quote(k)+" cannot be used with "+model,
				diagnostic.OneOf(allowed))
			return nil
		}
	}
	return l.finish(d, n, model)
}

func (l *lossDraft) finish(d *decoder, n *node, model string) netem.Loss {
	switch model {
	case "share":
		if l.correlation > 0 && l.share > 0 {
			return netem.CorrelatedLoss{Share: l.share, Correlation: l.correlation}
		}
		if l.share == 0 {
			return nil
		}
		return netem.UniformLoss(l.share)
	case "every":
		if l.every == 0 {
			return nil
		}
		return netem.PeriodicLoss{Every: l.every, First: l.first}
	case "from":
		if n.get("to") == nil || n.get("share") == nil {
			d.bad(n, "a loss window needs from, to and share", "{from: 10s, to: 12s, share: 100%}")
			return nil
		}
		l.window.Share = l.share
		l.windows = []netem.Window{l.window}
	case "windows":
	default:
		return l.Loss
	}
	t := netem.ByTime{Windows: l.windows, Every: l.repeat}
	if len(t.Windows) == 0 || !d.check(n, t) {
		return nil
	}
	return t
}

// lossWords reads the arguments of the keyword loss in tc-netem(8).
func lossWords(d *decoder, n *node) netem.Loss {
	const ahead = "loss "
	text, ok := d.scalar(n, "the arguments of tc-netem(8) after loss, such as 0.3% 25%")
	if !ok {
		return nil
	}
	cfg, err := netem.Parse(ahead + text)
	if err != nil {
		d.wordError(n, len(ahead), err)
		return nil
	}
	return cfg.Loss
}

func listedBytes(d *decoder, n *node) netem.Loss {
	if n.kind != list || len(n.items) == 0 || len(n.items) > maxListed {
		d.bad(n, n.shown()+" is not a list of bytes", "a list, such as [14600, 1MB]")
		return nil
	}
	var l netem.ByteLoss
	for _, item := range n.items {
		v, ok := d.bytes(item, "the number of a byte", 0, maxBytes)
		if !ok {
			return nil
		}
		l = append(l, v)
	}
	return l
}

func windowKeys(w *netem.Window) []key {
	return []key{
		{"from", "", readTime("a start time", maxSpan, &w.From)},
		{"to", "", readTime("an end time", maxSpan, &w.To)},
		{"share", "100%", readShare("a loss", &w.Share)},
	}
}

func readWindows(d *decoder, n *node) []netem.Window {
	if n.kind != list || len(n.items) == 0 || len(n.items) > maxListed {
		d.bad(n, n.shown()+" is not a list of windows", "a list such as [{from: 10s, to: 12s}]")
		return nil
	}
	var out []netem.Window
	for _, item := range n.items {
		var w netem.Window
		if !d.fill(item, "a window", windowKeys(&w)) {
			return nil
		}
		out = append(out, w)
	}
	return out
}

func onOffKeys(o *netem.OnOff) []key {
	return []key{
		{"on", "", readTime("the time on", maxSpan, &o.On)},
		{"off", "", readTime("the time off", maxSpan, &o.Off)},
		{"poisson", "", readSwitch(&o.Poisson)},
	}
}

func readOnOff(d *decoder, n *node) netem.Loss {
	var o netem.OnOff
	if !d.fill(n, "an on-off loss", onOffKeys(&o)) || !d.check(n, o) {
		return nil
	}
	return o
}

func stateKeys(f *netem.FourStates) []key {
	return []key{
		{"p13", "", readShare("a probability", &f.P13)},
		{"p31", "", readShare("a probability", &f.P31)},
		{"p32", "", readShare("a probability", &f.P32)},
		{"p23", "", readShare("a probability", &f.P23)},
		{"p14", "", readShare("a probability", &f.P14)},
	}
}

// readStates reads the chain with four states of tc-netem(8). Missing probabilities are zero.
func readStates(d *decoder, n *node) netem.Loss {
	var f netem.FourStates
	if !d.fill(n, "a loss of four states", stateKeys(&f)) {
		return nil
	}
	if n.get("p13") == nil {
		d.bad(n, "the four-state model needs p13", "p13: 1%")
		return nil
	}
	if n.get("p31") == nil {
		f.P31 = 1 - f.P13
	}
	if n.get("p32") != nil && n.get("p23") == nil {
		f.P23 = 1
	}
	if !d.check(n, f) {
		return nil
	}
	return f
}

// gilbertDraft holds the parameters of a Gilbert-Elliott model in either form.
type gilbertDraft struct {
	mean, burst float64
	netem.GilbertElliott
}

func (g *gilbertDraft) keys() []key {
	return []key{
		{"mean", "", readShare("a mean loss", &g.mean)},
		{"burst", "", func(d *decoder, n *node) {
			const what, most = "the packets lost in a burst", 1e6
			m, ok := d.quantity(n, what, result.Pure, result.PacketCount)
			if ok && (m.value < 1 || m.value > most) {
				d.bad(n, n.text+" is out of range", what+", from 1 to 1000000")
				return
			}
			g.burst = m.value
		}},
		{"p", "", readShare("the probability of a change from good to bad", &g.P)},
		{"r", "", readShare("the probability of a change from bad to good", &g.R)},
		{"good", "", readShare("a loss", &g.Good)},
		{"bad", "", readShare("a loss", &g.Bad)},
	}
}

// readGilbert reads a Gilbert-Elliott model in one of two forms: mean and burst length, or
// probabilities.
func readGilbert(d *decoder, n *node) netem.Loss {
	g := gilbertDraft{}
	g.Bad = 1
	before := d.report.added
	if !d.fill(n, "a Gilbert-Elliott loss", g.keys()) || d.report.added > before {
		return nil
	}
	means, chances := n.get("mean") != nil, n.get("p") != nil
	switch {
	case means == chances:
		d.bad(n, "the Gilbert-Elliott model has no parameters",
			"{mean: 2%, burst: 5} or {p: 1%, r: 30%}")
		return nil
	case chances && n.get("burst") != nil:
		d.bad(n, "burst needs mean", "{mean: 2%, burst: 5} or {p: 1%, r: 30%}")
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
		d.bad(n, "no two-state chain loses "+n.get("mean").text+" in bursts of "+
			strconv.FormatFloat(g.burst, 'g', -1, 64), "a smaller mean or longer bursts")
		return nil
	}
	return netem.Bursts(g.mean, g.burst)
}
