package plan

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

const scriptSuffix = ".star"

// readAlgorithm reads a flow's congestion control: a name, or a Starlark file.
func (f *flowDraft) readAlgorithm(d *decoder, n *node) {
	want := diagnostic.OneOf(append(tcp.Algorithms(), "a FILE"+scriptSuffix))
	text, ok := d.scalar(n, want)
	switch {
	case !ok:
	case isScript(text):
		f.TCP.Recovery.Congestion = path.Base(text)
		f.Script = readScript(d, n, text, f.at.get("params"))
	case slices.Contains(tcp.Algorithms(), text):
		f.TCP.Recovery.Congestion = text
	default:
		d.bad(n, diagnostic.Quote(text)+" is not a congestion control"+
			diagnostic.DidYouMean(text, tcp.Algorithms()), want)
	}
}

func isScript(cc string) bool { return strings.HasSuffix(cc, scriptSuffix) }

// checkParams checks that the values of a script's parameters are numbers.
func (f *flowDraft) checkParams(d *decoder, n *node) {
	if cc := f.TCP.Recovery.Congestion; !isScript(cc) {
		d.bad(n, "params need a Starlark script, and cc is "+diagnostic.Quote(cc),
			"cc: FILE"+scriptSuffix+", or no params")
		return
	}
	if n.kind != mapping {
		d.bad(n, n.shown()+" is not a script's params", "a mapping such as {beta: 0.7}")
		return
	}
	for _, p := range n.pairs {
		if text, ok := d.scalar(p.value, "a number"); ok {
			if _, err := strconv.ParseFloat(text, 64); err != nil {
				d.bad(p.value, diagnostic.Quote(text)+" is not a parameter's value",
					"a number such as 0.5, without a unit")
			}
		}
	}
}

// readScript reads a Starlark file, whose parameters have the values in params; nil: the defaults.
// Errors in the file show their position.
func readScript(d *decoder, n *node, name string, params *node) *starlark.Program {
	if d.load == nil {
		return nil
	}
	text, err := d.load(name)
	if err != nil {
		d.bad(n, err.Error(), "the file of a Starlark congestion controller")
		return nil
	}
	given := starlark.Params{}
	if params != nil {
		for _, p := range params.pairs {
			given[p.key.text] = p.value.text
		}
	}
	p, err := starlark.Compile(name, text, given)
	var bad *starlark.Error
	if errors.As(err, &bad) && bad.Param != "" {
		d.bad(params.get(bad.Param), bad.File+": "+bad.What, "")
		return nil
	}
	if err != nil {
		src := &source{name: name, lines: strings.Split(string(text), "\n")}
		scriptErrors(d.report, src, err)
	}
	return p
}

func scriptErrors(r *report, src *source, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			scriptErrors(r, src, e)
		}
		return
	}
	var e *starlark.Error
	if !errors.As(err, &e) {
		r.add(place{src: src}, err.Error(), "")
		return
	}
	src.name = e.File
	r.add(place{src, e.Line, e.Column, 1}, e.What, "")
}
