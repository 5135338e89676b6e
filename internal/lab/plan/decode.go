package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/netem"
)

type decoder struct {
	report *report
	load   Loader // reads files; nil: file contents are not checked
	memo   memo
	// variables are the swept variables.
	variables []variable
	changed   bool           // a flag has changed the file
	scope     *formula.Scope // scope of the expectations that are being read
	// Other parts of a file depend on these values.
	mtu        int
	leastMTU   int
	headers    int // size of the IP and TCP headers without options, in bytes
	duration   time.Duration
	rtt        time.Duration // round-trip time of the path without a queue
	bottleneck float64       // mean rate in bit/s; 0: unlimited
	unread     bool          // a rate is unknown: it has an error, or its file is not read yet
}

// memo has the parts of experiments that cells share, by the node from which they were read and the
// other values on which they depend. If it is nil, each cell reads all of its parts.
type memo map[memoKey]any

type memoKey struct {
	n  *node
	of any
}

// shared returns a part from the memo. If the part is missing, shared reads it, and keeps it unless
// there were errors.
func shared[T any](d *decoder, n *node, of any, read func() T) T {
	key, before := memoKey{n, of}, d.report.added
	v, ok := d.memo[key].(T)
	if ok {
		return v
	}
	if v = read(); d.memo != nil && d.report.added == before {
		d.memo[key] = v
	}
	return v
}

func (d *decoder) bad(n *node, msg, want string) { d.report.bad(n, msg, want) }

// reading reads a value into a field.
type reading func(d *decoder, n *node)

// key is a key of a mapping: its name, its default in the file's notation (empty: no default), and
// the function that reads its value.
type key struct {
	name    string
	initial string
	read    reading
}

// fill reads a mapping, key by key in the order of the table. what describes the mapping in error
// messages, such as "a flow".
func (d *decoder) fill(n *node, what string, keys []key) bool {
	if n.kind != mapping {
		d.bad(n, n.shown()+" is not "+what, "a mapping with "+listed(keys))
		return false
	}
	d.report.unknownKeys(n, what, names(keys))
	for _, k := range keys {
		v := n.get(k.name)
		switch {
		case v == nil && k.initial != "":
			k.read(d, defaultNode(n, k.initial))
		case v == nil:
		case v.empty():
			d.bad(v, diagnostic.Quote(k.name)+" has no value", "a value (or remove the line)")
		default:
			k.read(d, v)
		}
	}
	return true
}

// readMapping reads a mapping with these keys.
func readMapping(what string, keys []key) reading {
	return func(d *decoder, n *node) { d.fill(n, what, keys) }
}

// readNode keeps a value that is read after other keys.
func readNode(to **node) reading { return func(_ *decoder, n *node) { *to = n } }

func defaultNode(at *node, text string) *node { return &node{place: at.place, text: text} }

func names(keys []key) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.name
	}
	return out
}

// listed formats the names of keys for a message. If there are many, it names only some of them.
func listed(keys []key) string {
	const most = 6
	all := names(keys)
	if len(all) > most {
		return strings.Join(all[:most], ", ") + " …"
	}
	return diagnostic.OneOf(all)
}

func (n *node) shown() string {
	switch {
	case n.kind == list:
		return "a list"
	case n.kind == mapping:
		return "a mapping"
	case n.empty():
		return "nothing"
	}
	return diagnostic.Quote(n.text)
}

// scalar returns the text of a value that is neither a list nor a mapping.
func (d *decoder) scalar(n *node, want string) (string, bool) {
	if n.kind != scalar || n.empty() {
		d.bad(n, n.shown()+" is not allowed here", want)
		return "", false
	}
	return n.text, true
}

// word reads one of several words. what describes them in error messages, such as "a congestion
// control".
func (d *decoder) word(n *node, what string, words []string) (string, bool) {
	if n.kind == scalar && slices.Contains(words, n.text) {
		return n.text, true
	}
	text, ok := d.scalar(n, diagnostic.OneOf(words))
	if !ok {
		return "", false
	}
	near := diagnostic.DidYouMean(text, words)
	d.bad(n, diagnostic.Quote(text)+" is not "+what+near, diagnostic.OneOf(words))
	return "", false
}

func readWord(what string, words []string, to *string) reading {
	return func(d *decoder, n *node) { *to, _ = d.word(n, what, words) }
}

func readOneOf[T fmt.Stringer](what string, to *T, values ...T) reading {
	return func(d *decoder, n *node) {
		words := make([]string, len(values))
		for i, v := range values {
			words[i] = v.String()
		}
		if w, ok := d.word(n, what, words); ok {
			*to = values[slices.Index(words, w)]
		}
	}
}

func unlessNone(read reading) reading {
	return func(d *decoder, n *node) {
		if !n.plain("none") {
			read(d, n)
		}
	}
}

func readSwitch(to *bool) reading {
	return func(d *decoder, n *node) {
		w, ok := d.word(n, "a switch", []string{"on", "off", "true", "false", "yes", "no"})
		if ok {
			*to = w == "on" || w == "true" || w == "yes"
		}
	}
}

// readInverse reads a switch into a field with the opposite meaning.
func readInverse(to *bool) reading {
	return func(d *decoder, n *node) {
		on := !*to
		readSwitch(&on)(d, n)
		*to = !on
	}
}

func (d *decoder) number(n *node, what string, least, most int64) (int64, bool) {
	want := what + " from " + strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(most, 10)
	text, ok := d.scalar(n, want)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		d.bad(n, diagnostic.Quote(text)+" is not a whole number", want)
		return 0, false
	case v < least || v > most:
		d.bad(n, text+" is out of range", want)
		return 0, false
	}
	return v, true
}

func readNumber[T int | uint64](what string, least, most int64, to *T) reading {
	return func(d *decoder, n *node) {
		if v, ok := d.number(n, what, least, most); ok {
			*to = T(v)
		}
	}
}

// readCount reads an integer of at least 1.
func readCount(what string, most int, to *int) reading {
	return readNumber(what, 1, int64(most), to)
}

// alternative returns the only one of the keys that a mapping has: the key that names its kind. It
// returns "" if it has reported an error.
func (d *decoder) alternative(n *node, what string, keys []string) string {
	var found []string
	for _, k := range keys {
		if n.get(k) != nil {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		for _, p := range n.pairs {
			if near := diagnostic.DidYouMean(p.key.text, keys); near != "" {
				d.bad(p.key, diagnostic.Quote(p.key.text)+" is not a key of "+what+near, "")
				return ""
			}
		}
		d.bad(n, "the mapping has no kind", what+" with "+diagnostic.OneOf(keys))
		return ""
	case 1:
		return found[0]
	}
	d.bad(n, found[0]+" and "+found[1]+" cannot be used together", "only one of them")
	return ""
}

func (d *decoder) check(n *node, part interface{ Validate() error }) bool {
	err := part.Validate()
	if err == nil {
		return true
	}
	d.bad(n, plainly(err), "")
	return false
}

// plainly returns the text of netem's error without the package's name.
func plainly(err error) string {
	return strings.TrimPrefix(err.Error(), netem.ErrConfig.Error()+": ")
}

// wordError reports an error of netem in a text. The text begins ahead characters before the text
// of n.
func (d *decoder) wordError(n *node, ahead int, err error) {
	var w *netem.WordError
	if !errors.As(err, &w) {
		d.bad(n, plainly(err), "")
		return
	}
	skip := utf8.RuneCountInString(w.Text[:w.At]) - ahead
	d.report.add(n.within(skip, w.Word), w.Message(), w.Want)
}

// within returns the position of a word that follows skip characters of a scalar's text.
func (n *node) within(skip int, word string) place {
	p := n.place
	if strings.Contains(n.text, "\n") || n.text != "" && n.width < utf8.RuneCountInString(n.text) {
		return p
	}
	p.col += skip
	if n.quoted {
		p.col++
	}
	p.width = max(1, utf8.RuneCountInString(word))
	return p
}

// file reads a file that the experiment names. If the File has no Loader, it returns false without
// an error.
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
