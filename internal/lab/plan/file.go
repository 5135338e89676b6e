package plan

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/formula"
)

// File is an experiment file with the changes of Set and Sweep.
type File struct {
	// Load reads the traces and scripts that the file names; Cells calls it. Without Load such
	// names are errors.
	Load Loader

	root    *node
	sweeps  []variable
	changed bool // a flag has changed the file
	notes   []string
}

// Notes list the file's sweeps that Netem and Mahimahi have removed.
func (f *File) Notes() []string { return f.notes }

// These are limits of a sweep.
const (
	// MaxCells is the maximum number of cells.
	MaxCells = 10_000
	// MaxRuns is the maximum number of cells times trials.
	MaxRuns = 1_000_000
	// MaxFlowCells is the maximum number of cells times flows.
	MaxFlowCells = 200_000
)

type variable struct {
	name   string // name in expectations
	named  bool   // the file has set the name
	key    string // key as written in the file
	at     place
	source pair // key and value in the file or the flag
	values []point
	scope  formula.Variable // the variable as formulas see it
}

// sets reports whether a value of the variable changes a key for which has returns true.
func (v *variable) sets(has func(keyPath) bool) bool {
	return slices.ContainsFunc(v.values, func(p point) bool {
		return slices.ContainsFunc(p.changes, func(c change) bool { return has(c.key) })
	})
}

// point is a value of a variable, with the keys that it changes.
type point struct {
	text    string
	at      place
	changes []change
}

type change struct {
	key   keyPath
	value *node
}

// Parse reads an experiment file, but not the traces that it names. Its error is of type Errors,
// which has all errors in the file with their lines and columns.
func Parse(name string, src []byte) (*File, error) {
	r := &report{}
	text := strings.TrimPrefix(string(src), "\ufeff")
	root := read(r, fileSource(name, text), text)
	if root == nil {
		return nil, r.err()
	}
	f := &File{root: root}
	if n := root.get("sweep"); n != nil && !n.empty() {
		f.sweeps = readSweep(r, n)
		nameVariables(f.sweeps)
	}
	f.probe(r)
	if err := r.err(); err != nil {
		return nil, err
	}
	return f, nil
}

// probe decodes the first cell, and one cell for each other swept value. It also checks the file's
// own values of swept keys.
func (f *File) probe(r *report) {
	unswept := &report{}
	d := decoder{report: unswept, variables: f.sweeps}
	d.experiment(f.root)
	for _, v := range f.sweeps {
		for _, c := range v.values[0].changes {
			for _, e := range unswept.errs {
				if n := f.root.find(c.key); n != nil && e.Line == n.line && e.Col == n.col {
					r.add(n.place, e.Msg, e.Want)
				}
			}
		}
	}
	at, parts := make([]int, len(f.sweeps)), memo{}
	f.decode(r, at, nil, parts)
	if f.total(r) == 0 {
		return
	}
	for i, v := range f.sweeps {
		for at[i] = 1; at[i] < len(v.values); at[i]++ {
			f.decode(r, at, nil, parts)
		}
		at[i] = 0
	}
}

// total returns the number of cells. It returns 0 if it has reported that there are too many.
func (f *File) total(r *report) int {
	total := 1
	for _, v := range f.sweeps {
		if total *= len(v.values); total > MaxCells {
			r.add(v.at, "too many cells", strconv.Itoa(MaxCells)+" at most")
			return 0
		}
	}
	return total
}

// decode makes the experiment of one cell, given the index of each variable's value.
func (f *File) decode(r *report, at []int, load Loader, parts memo) Experiment {
	d := decoder{report: r, load: load, variables: f.sweeps, changed: f.changed, memo: parts}
	root := f.root
	r.cell = nil
	for i, v := range f.sweeps {
		p := v.values[at[i]]
		if slices.Max(at) > 0 {
			r.cell = append(r.cell, swept{Setting{v.key, v.name, p.text}, p.at})
		}
		for _, c := range p.changes {
			if next := r.with(root, c.key, c.value); next != nil {
				root = next
			}
		}
	}
	x := d.experiment(root)
	r.cell = nil
	return x
}

// readFlag reads KEY=VALUE, or KEY=VALUE,VALUE,… as a list. It returns a nil value if it has
// reported an error.
func readFlag(r *report, flag, arg string, many bool) (k keyPath, value *node) {
	src := &source{name: flag, flag: true, lines: []string{arg}}
	key, text, found := strings.Cut(arg, "=")
	key = strings.TrimSpace(key)
	if !found || key == "" {
		want := "KEY=VALUE, such as flows.0.cc=reno"
		if many {
			want = "KEY=A,B,..., such as flows.0.cc=reno,cubic"
		}
		r.add(place{src, 1, 1, max(1, utf8.RuneCountInString(arg))},
			diagnostic.Quote(arg)+" is not a key and a value", want)
		return k, nil
	}
	k = splitKey(key, place{src: src, line: 1, col: 1})
	empty := strings.TrimSpace(text) == ""
	src.shift = utf8.RuneCountInString(text) - utf8.RuneCountInString(arg)
	if many {
		text = "[" + text + "]"
		src.shift++
	}
	switch {
	case strings.ContainsAny(arg, "\n\r"):
		r.add(place{src, 1, 1, 1}, "more than one line", "KEY=VALUE")
	case empty:
		r.add(place{src, 1, max(1, 1-src.shift), 1}, "the value is missing", "KEY=VALUE")
	default:
		if value = read(r, src, text); value != nil && !knownFirst(r, k) {
			value = nil
		}
	}
	return k, value
}

// Set changes the value of a key: "path.down.queue.limit=1bdp". Cells reports errors in the value.
// The key is no longer swept.
func (f *File) Set(arg string) error {
	r := &report{}
	k, value := readFlag(r, "--set", arg, false)
	if value == nil {
		return r.err()
	}
	if k.segments[0].text == "sweep" {
		r.add(k.segments[0].place, "a sweep cannot be set", "--sweep KEY=VALUE,VALUE")
		return r.err()
	}
	root := r.with(f.root, k, value)
	if root == nil {
		return r.err()
	}
	f.root = root
	f.changed = true
	f.unsweep(k.text)
	return nil
}

// knownFirst reports whether the first part of a key is a key of experiment files.
func knownFirst(r *report, k keyPath) bool {
	known := names(new(draft).keys())
	if slices.Contains(known, k.segments[0].text) {
		return true
	}
	r.unknownKey(k.segments[0], "an experiment", known)
	return false
}

// unsweep stops sweeping a key.
func (f *File) unsweep(key string) {
	var left []variable
	for _, v := range f.sweeps {
		if !matchesKey(key, v.key) {
			left = append(left, v)
		}
	}
	f.sweeps = left
	nameVariables(f.sweeps)
}

// matchesKey reports whether a key equals another one; * matches any part.
func matchesKey(key, other string) bool {
	a, b := strings.Split(key, "."), strings.Split(other, ".")
	return slices.EqualFunc(a, b, func(x, y string) bool { return x == y || x == "*" })
}

// Sweep sweeps a key over several values: "flows.0.cc=reno,cubic". They replace the file's sweep of
// the key.
func (f *File) Sweep(arg string) error {
	r := &report{}
	k, values := readFlag(r, "--sweep", arg, true)
	if values == nil {
		return r.err()
	}
	v, ok := readVariable(r, &node{place: k.segments[0].place, text: k.text}, values)
	if !ok {
		return r.err()
	}
	f.changed = true
	defer func() { nameVariables(f.sweeps) }()
	for i := range f.sweeps {
		if f.sweeps[i].key == v.key {
			f.sweeps[i] = v
			return nil
		}
	}
	f.sweeps = append(f.sweeps, v)
	return nil
}

// Cells returns the cross product of the swept variables, in which the last variable changes
// fastest. Without a sweep, it returns one cell. Its error is of type Errors; errors in flags name
// the flag instead of the file.
func (f *File) Cells() ([]Cell, error) {
	r := &report{}
	total := f.total(r)
	if total == 0 {
		return nil, r.err()
	}
	load := f.Load
	if load == nil {
		load = noFiles
	}
	load = once(load)
	cells := make([]Cell, 0, total)
	at, parts := make([]int, len(f.sweeps)), memo{}
	for i := range total {
		rest := i
		for j := len(at) - 1; j >= 0; j-- {
			n := len(f.sweeps[j].values)
			at[j], rest = rest%n, rest/n
		}
		c := Cell{Index: i, Experiment: f.decode(r, at, load, parts)}
		for j, v := range f.sweeps {
			c.Set = append(c.Set, Setting{v.key, v.name, v.values[at[j]].text})
		}
		if cells = append(cells, c); r.more {
			break
		}
		if len(c.Flows)*total > MaxFlowCells {
			r.add(f.root.place, "too many flows in total: cells times flows",
				strconv.Itoa(MaxFlowCells)+" at most")
			break
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	runs := 0
	for _, c := range cells {
		if runs += c.Trials; runs > MaxRuns {
			r.add(f.root.place, "too many runs: cells times trials",
				strconv.Itoa(MaxRuns)+" at most")
			return nil, r.err()
		}
	}
	return cells, nil
}

// label returns a value as text.
func label(n *node) string {
	if n.kind == scalar {
		return n.text
	}
	var b strings.Builder
	flowStyle(&b, n)
	return b.String()
}
