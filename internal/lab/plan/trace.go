package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// Loader reads a file that an experiment names.
type Loader func(name string) ([]byte, error)

func (l *link) readTrace(d *decoder, n *node) {
	l.unknown = true
	if l.rateNode != nil {
		d.bad(n, "a rate and a trace cannot be used together", "only one of them")
		return
	}
	l.rateNode = n
	at := shared(d, nil, label(n), func() netem.Trace { return readOpportunities(d, n) })
	o := netem.Opportunities{At: at}
	if at == nil || !d.check(n, o) {
		return
	}
	l.Rate, l.unknown = o, false
	l.mean = meanRate(o, d.duration)
}

// readOpportunities reads a trace in any of its forms: generated, listed, or from a file. It
// returns nil after an error.
func readOpportunities(d *decoder, n *node) netem.Trace {
	switch n.kind {
	case mapping:
		return readGenerated(d, n)
	case list:
		return readListed(d, n)
	case scalar:
	}
	text, ok := d.file(n, "a mahimahi trace")
	if !ok {
		return nil
	}
	return d.trace(n, n.text, text)
}

// readListed reads a trace whose times are in the experiment file.
func readListed(d *decoder, n *node) netem.Trace {
	var text []byte
	for _, item := range n.items {
		ms, ok := d.scalar(item, "a time in milliseconds")
		if !ok {
			return nil
		}
		text = append(append(text, ms...), '\n')
	}
	return d.trace(n, "entry", text)
}

func (d *decoder) trace(n *node, name string, text []byte) netem.Trace {
	t, _, err := netem.ParseTrace(name, text)
	if e, ok := errors.AsType[*diagnostic.Error](err); ok {
		place := diagnostic.Error{File: e.File, Line: e.Line, Msg: e.Msg}
		d.bad(n, place.Error(), cmp.Or(e.Want, "a time in milliseconds in each line, in order"))
		return nil
	}
	return t
}

type traceDraft struct {
	netem.TraceSpec
	kinds int // number of keys that name a kind
}

func (g *traceDraft) keys() []key {
	kind := func(name string) key {
		return key{name, "", func(d *decoder, n *node) {
			g.kinds++
			g.Kind = name
			g.Rate, _ = d.rate(n, "a link's rate")
		}}
	}
	return []key{
		kind("const"),
		kind("poisson"),
		kind("onoff"),
		kind("cell"),
		{"low", "", readRate("the lowest rate", &g.Low)},
		{"length", "60s", readTime("the length of the trace", netem.MaxTraceLength, &g.Length)},
		{"on", "1s", readTime("the time on", maxSpan, &g.On)},
		{"off", "1s", readTime("the time off", maxSpan, &g.Off)},
		{"stay", "2s", readTime("the time between changes of the rate", maxSpan, &g.Stay)},
		{"stall", "", readTime("the length of the stall at the start", maxSpan, &g.Stall)},
		{"stall_rate", "", readRate("the rate during the stall", &g.StallRate)},
		{"seed", "1", readNumber("a seed", 0, math.MaxInt64, &g.Seed)},
	}
}

func readGenerated(d *decoder, n *node) netem.Trace {
	var g traceDraft
	before := d.report.added
	if !d.fill(n, "a trace", g.keys()) || d.report.added > before {
		return nil
	}
	if g.kinds != 1 {
		d.bad(n, "a trace needs exactly one kind",
			"one of "+strings.Join(netem.TraceKinds, ", ")+", such as {poisson: 2.64Mbit/s}")
		return nil
	}
	t, err := g.Make()
	if err != nil {
		d.bad(n, err.Error(), "")
		return nil
	}
	return t
}

// noFiles is the Loader of a File that has no Loader.
func noFiles(name string) ([]byte, error) {
	return nil, fmt.Errorf("%s: files cannot be read here", name)
}

// once returns a Loader that reads each file only once.
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
