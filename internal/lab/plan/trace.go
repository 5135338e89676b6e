package plan

import (
	"fmt"
	"math"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/trace"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// Loader reads a file that an experiment names.
type Loader func(name string) ([]byte, error)

// trace reads a rate that is a list of opportunities, from a file or generated.
func (d *decoder) trace(n *node, l *link) {
	if n.plain("none") {
		return
	}
	l.unknown = true
	if l.rateNode != nil {
		d.bad(n, "a rate and a trace exclude each other",
			"one of them, and none for the other")
		return
	}
	l.rateNode = n
	name := label(n)
	at, ok := d.traces[name]
	if !ok {
		at, ok = d.opportunities(n)
	}
	if ok && d.traces != nil {
		d.traces[name] = at // all cells share it
	}
	o := netem.Opportunities{At: at}
	if !ok || !d.check(n, o) {
		return
	}
	l.Rate, l.unknown = o, false
	l.mean = d.meanRate(o)
}

// opportunities reads a trace in any of its forms.
func (d *decoder) opportunities(n *node) (trace.Trace, bool) {
	switch n.kind {
	case mapping:
		return d.generated(n)
	case list:
		return d.listed(n)
	case scalar:
	}
	return d.read(n)
}

// read reads the file of a trace.
func (d *decoder) read(n *node) (trace.Trace, bool) {
	text, ok := d.file(n, "a trace of mahimahi's")
	if !ok {
		return nil, false
	}
	t, _, err := trace.Parse(n.text, text)
	if err != nil {
		msg, want, found := strings.Cut(err.Error(), ": want ")
		if !found {
			want = "a time in milliseconds in each line, in order"
		}
		d.bad(n, msg, want)
	}
	return t, err == nil
}

// listed reads a trace whose times stand in the experiment.
func (d *decoder) listed(n *node) (trace.Trace, bool) {
	var text []byte
	for _, item := range n.items {
		ms, ok := d.scalar(item, "a time in milliseconds")
		if !ok {
			return nil, false
		}
		text = append(append(text, ms...), '\n')
	}
	t, _, err := trace.Parse("entry", text)
	if err != nil {
		d.bad(n, err.Error(), "times in milliseconds, in order")
	}
	return t, err == nil
}

// generatedOf is a trace in the making.
type generatedOf struct {
	trace.Spec
	kinds []pair // of trace.Kinds: with the rate of each
}

// kindKey is a kind of trace, with its rate.
func kindKey(name string) key[generatedOf] {
	return key[generatedOf]{name, "", func(d *decoder, n *node, g *generatedOf) {
		g.kinds = append(g.kinds, pair{&node{place: n.place, text: name}, n})
		g.Kind = name
		g.Rate, _ = d.rate(n, "how fast the link is")
	}}
}

var generatedKeys = []key[generatedOf]{
	kindKey("const"),
	kindKey("poisson"),
	kindKey("onoff"),
	kindKey("cell"),
	{"low", "", func(d *decoder, n *node, g *generatedOf) {
		g.Low, _ = d.rate(n, "the least rate")
	}},
	{"length", "60s", func(d *decoder, n *node, g *generatedOf) {
		d.time(n, "when the trace begins again", trace.MaxLength, &g.Length)
	}},
	{"on", "1s", func(d *decoder, n *node, g *generatedOf) {
		d.time(n, "how long it sends", maxSpan, &g.On)
	}},
	{"off", "1s", func(d *decoder, n *node, g *generatedOf) {
		d.time(n, "how long it does not", maxSpan, &g.Off)
	}},
	{"stay", "2s", func(d *decoder, n *node, g *generatedOf) {
		d.time(n, "how long it keeps a rate", maxSpan, &g.Stay)
	}},
	{"stall", "", func(d *decoder, n *node, g *generatedOf) {
		d.time(n, "how long it stalls first", maxSpan, &g.Stall)
	}},
	{"stall_rate", "", func(d *decoder, n *node, g *generatedOf) {
		g.StallRate, _ = d.rate(n, "how fast it is in a stall")
	}},
	{"seed", "1", func(d *decoder, n *node, g *generatedOf) {
		if v, ok := d.number(n, "a seed", 0, math.MaxInt64); ok {
			g.Seed = uint64(v)
		}
	}},
}

// generated makes a trace that a mapping describes.
func (d *decoder) generated(n *node) (trace.Trace, bool) {
	var g generatedOf
	before := len(d.report.errs)
	if !fill(d, n, "a trace", generatedKeys, &g) || len(d.report.errs) > before {
		return nil, false
	}
	if len(g.kinds) != 1 {
		d.bad(n, "a trace of no kind, or of several", "one of "+strings.Join(trace.Kinds, ", ")+
			": {poisson: 2.64Mbit/s}")
		return nil, false
	}
	t, err := g.Make()
	if err != nil {
		d.bad(n, err.Error(), "")
	}
	return t, err == nil
}

// file reads a file that the experiment names. While nobody is there to read it, what is in it
// is not known, which is no mistake yet.
func (d *decoder) file(n *node, what string) (text []byte, ok bool) {
	name, ok := d.scalar(n, "the name of "+what)
	if !ok || d.load == nil {
		return nil, false
	}
	text, err := d.load(name)
	if err != nil {
		d.bad(n, err.Error(), what)
		return nil, false
	}
	return text, true
}

// noFiles is the Loader of a File without one.
func noFiles(name string) ([]byte, error) {
	return nil, fmt.Errorf("%s: nothing reads files here", name)
}

// once reads each file no more than one time.
func once(load Loader) Loader {
	type answer struct {
		text []byte
		err  error
	}
	seen := map[string]answer{}
	return func(name string) ([]byte, error) {
		a, ok := seen[name]
		if !ok {
			a.text, a.err = load(name)
			seen[name] = a
		}
		return a.text, a.err
	}
}
