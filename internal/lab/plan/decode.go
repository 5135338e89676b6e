package plan

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/trace"
	"github.com/tidepool-net/tidepool/internal/mistake"
	"github.com/tidepool-net/tidepool/internal/spell"
)

// decoder makes an Experiment of a document.
type decoder struct {
	report *report
	load   Loader // reads files; nil: what they hold is not looked at
	// traces are those read so far, by how they are written; nil: each is read again.
	traces map[string]trace.Trace
	// variables are what is swept.
	variables []variable
	changed   bool           // a flag changes the file
	scopeNow  *formula.Scope // of the expectations that are being read
	// What one part of a file needs of another.
	mtu        int
	duration   time.Duration
	rtt        time.Duration // of the path, without a queue
	bottleneck float64       // mean rate in bits a second; 0: there is none
	unread     bool          // there is a rate, but its file is not read yet
}

func (d *decoder) bad(n *node, msg, want string) { d.report.add(n.place, msg, want) }

// key is what a mapping may have: how it is called, what is read of it, and what it is if the
// file does not say, in the file's words; empty: there is no such word.
type key[T any] struct {
	name  string
	usual string
	read  func(d *decoder, n *node, to *T)
}

// fill reads a mapping, key by key in the order of the table. What is a phrase for messages:
// "a flow".
func fill[T any](d *decoder, n *node, what string, keys []key[T], to *T) bool {
	if n.kind != mapping {
		d.bad(n, d.shown(n)+" is not "+what, "a mapping with "+listed(keys))
		return false
	}
	for _, p := range n.pairs {
		if !slices.ContainsFunc(keys, func(k key[T]) bool { return k.name == p.key.text }) {
			d.stranger(p.key, what, names(keys))
		}
	}
	for _, k := range keys {
		v := n.get(k.name)
		switch {
		case v == nil && k.usual != "":
			k.read(d, usualNode(n, k.usual), to)
		case v == nil:
		case v.empty():
			d.bad(v, mistake.Quote(k.name)+" has no value", "one, or the line left out")
		default:
			k.read(d, v, to)
		}
	}
	return true
}

// usualNode is a value that a file leaves out.
func usualNode(at *node, text string) *node { return &node{place: at.place, text: text} }

// strangers reports keys that are not known.
func (d *decoder) strangers(n *node, what string, known []string) {
	for _, p := range n.pairs {
		if !slices.Contains(known, p.key.text) {
			d.stranger(p.key, what, known)
		}
	}
}

// stranger reports a key that is not known.
func (d *decoder) stranger(n *node, what string, known []string) {
	near := spell.DidYouMean(n.text, known)
	want := ""
	if near == "" {
		want = oneOf(known)
	}
	d.bad(n, mistake.Quote(n.text)+" is no key of "+what+near, want)
}

func names[T any](keys []key[T]) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.name
	}
	return out
}

// listed names keys for a message, which is none to learn all of them from.
func listed[T any](keys []key[T]) string {
	const most = 6
	all := names(keys)
	if len(all) > most {
		return strings.Join(all[:most], ", ") + " …"
	}
	return oneOf(all)
}

// shown names a value in a message.
func (d *decoder) shown(n *node) string {
	switch {
	case n.kind == list:
		return "a list"
	case n.kind == mapping:
		return "a mapping"
	case n.empty():
		return "nothing"
	}
	return mistake.Quote(n.text)
}

// scalar returns the text of a value that is neither a list nor a mapping.
func (d *decoder) scalar(n *node, want string) (string, bool) {
	if n.kind != scalar || n.empty() {
		d.bad(n, d.shown(n)+" is not what belongs here", want)
		return "", false
	}
	return n.text, true
}

// word reads one of some words. What says what they are: "a congestion control".
func (d *decoder) word(n *node, what string, words []string) (string, bool) {
	if n.kind == scalar && slices.Contains(words, n.text) {
		return n.text, true
	}
	text, ok := d.scalar(n, oneOf(words))
	if !ok {
		return "", false
	}
	near := spell.DidYouMean(text, words)
	d.bad(n, mistake.Quote(text)+" is not "+what+near, oneOf(words))
	return "", false
}

// truth reads a switch.
func (d *decoder) truth(n *node, to *bool) {
	switch w, ok := d.word(n, "a switch", []string{"on", "off", "true", "false", "yes", "no"}); {
	case !ok:
	case w == "on" || w == "true" || w == "yes":
		*to = true
	default:
		*to = false
	}
}

// number reads an integer.
func (d *decoder) number(n *node, what string, least, most int64) (int64, bool) {
	want := what + " from " + strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(most, 10)
	text, ok := d.scalar(n, want)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		d.bad(n, mistake.Quote(text)+" is not a whole number", want)
		return 0, false
	case v < least || v > most:
		d.bad(n, text+" is out of range", want)
		return 0, false
	}
	return v, true
}

// count reads a number from 1 into an int.
func (d *decoder) count(n *node, what string, most int, to *int) {
	if v, ok := d.number(n, what, 1, int64(most)); ok {
		*to = int(v)
	}
}

// alternatives reads a mapping of which exactly one key says which of several things it is.
func (d *decoder) alternatives(n *node, what string, keys []string) bool {
	var found []string
	for _, k := range keys {
		if n.get(k) != nil {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		for _, p := range n.pairs {
			if near := spell.DidYouMean(p.key.text, keys); near != "" {
				d.bad(p.key, mistake.Quote(p.key.text)+" is no key of "+what+near, "")
				return false
			}
		}
		d.bad(n, "a mapping that does not say what it is", what+" with "+oneOf(keys))
		return false
	case 1:
		return true
	}
	d.bad(n, found[0]+" and "+found[1]+" exclude each other", "one of them")
	return false
}
