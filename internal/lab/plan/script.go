package plan

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/mistake"
	"github.com/tidepool-net/tidepool/internal/script"
	"github.com/tidepool-net/tidepool/internal/spell"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// scriptSuffix is how the name of a file ends that is a congestion control.
const scriptSuffix = ".star"

// algorithm reads what governs a flow's window: an algorithm by name, or a Starlark file.
func (d *decoder) algorithm(n *node, f *flowOf) {
	want := oneOf(append(tcp.Algorithms(), "a FILE"+scriptSuffix))
	text, ok := d.scalar(n, want)
	switch {
	case !ok:
	case isScript(text):
		f.TCP.Congestion = path.Base(text)
		f.Script = d.script(n, text)
	case slices.Contains(tcp.Algorithms(), text):
		f.TCP.Congestion = text
	default:
		near := spell.DidYouMean(text, tcp.Algorithms())
		d.bad(n, mistake.Quote(text)+" is not a congestion control"+near, want)
	}
}

func isScript(cc string) bool { return strings.HasSuffix(cc, scriptSuffix) }

// Algorithms returns the names of the congestion controls that are built in.
func Algorithms() []string { return tcp.Algorithms() }

// script reads a Starlark file. What is wrong in there is shown where it stands.
func (d *decoder) script(n *node, name string) *script.Program {
	if d.load == nil {
		return nil
	}
	text, err := d.load(name)
	if err != nil {
		d.bad(n, err.Error(), "the file of a Starlark congestion controller")
		return nil
	}
	p, err := script.Compile(name, text)
	if err != nil {
		src := &source{name: name, lines: strings.Split(string(text), "\n")}
		d.mistakes(src, err)
	}
	return p
}

// mistakes reports those of a script.
func (d *decoder) mistakes(src *source, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			d.mistakes(src, e)
		}
		return
	}
	var e *script.Error
	if !errors.As(err, &e) {
		d.report.add(place{src: src}, err.Error(), "")
		return
	}
	src.name = e.File
	d.report.add(place{src, e.Line, e.Column, 1}, e.What, "")
}
