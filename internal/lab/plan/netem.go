package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// netemKeys returns the keys of experiment files for the fields of c that are set.
func netemKeys(c *netem.Config) (keys []string) {
	for _, part := range []struct {
		set  bool
		keys string
	}{
		{c.Delay != 0, "delay"},
		{c.Jitter != nil, "jitter"},
		{c.Rate != nil, "rate trace overhead"},
		{c.Queue != nil, "queue"},
		{c.Loss != nil, "loss"},
		{c.Duplicate != 0, "duplicate"},
		{c.Corrupt.Share != 0, "corrupt"},
		{c.Truncate != 0, "truncate"},
		{c.Reorder != netem.Reorder{}, "reorder"},
		{c.Policer != nil, "policer"},
	} {
		if part.set {
			keys = append(keys, strings.Fields(part.keys)...)
		}
	}
	return keys
}

// readNetem reads a direction from the arguments of tc-netem(8). Other keys of the mapping must not
// set the same parts.
func (l *link) readNetem(d *decoder, n *node) {
	cfg, ok := netemWords(d, n)
	if !ok {
		return
	}
	for _, k := range netemKeys(&cfg) {
		if v := l.at.get(k); v != nil {
			d.bad(v, k+" is also set in netem's arguments", "only one of them")
		}
	}
	l.Config, l.mean = cfg, meanRate(cfg.Rate, d.duration)
}

func netemWords(d *decoder, n *node) (netem.Config, bool) {
	text, ok := d.scalar(n, "arguments of tc-netem(8), such as delay 20ms loss 1%")
	if !ok {
		return netem.Config{}, false
	}
	cfg, err := netem.Parse(text)
	if err != nil {
		d.wordError(n, 0, err)
		return netem.Config{}, false
	}
	return cfg, true
}

// Netem applies arguments of tc-netem(8), such as "delay 40ms loss 1%", to the direction down. They
// replace the parts of the link that they name, swept or not. Other parts do not change.
func (f *File) Netem(words string) error {
	r := &report{}
	n := flagWords(r, "--netem", words)
	if n == nil {
		return r.err()
	}
	d := decoder{report: r}
	cfg, ok := netemWords(&d, n)
	path := f.root.get("path")
	if ok && path == nil {
		d.bad(n, "netem arguments need the key path", "a file with path instead of mm")
	}
	if len(r.errs) > 0 {
		return r.err()
	}
	down, replaced := &node{place: n.place, kind: mapping}, netemKeys(&cfg)
	if old := path.get("down"); old != nil && old.kind == mapping {
		down.pairs = slices.DeleteFunc(slices.Clone(old.pairs), func(p pair) bool {
			return p.key.text == "netem" || slices.Contains(replaced, p.key.text)
		})
	}
	down.pairs = append(down.pairs, pair{&node{place: n.place, text: "netem"}, n})
	root := r.with(f.root, splitKey("path.down", n.place), down)
	if root == nil {
		return r.err()
	}
	f.root, f.changed = root, true
	for _, k := range replaced {
		f.unsweepBelow("--netem", "path", "down", k)
	}
	return nil
}

// Mahimahi replaces the path by a mahimahi command line, such as "mm-delay 40 mm-link up down". All
// sweeps over keys of the path end.
func (f *File) Mahimahi(words string) error {
	r := &report{}
	n := flagWords(r, "--mm", words)
	if n == nil {
		return r.err()
	}
	readMahimahi(&decoder{report: r}, n, &link{}, &link{})
	if len(r.errs) > 0 {
		return r.err()
	}
	root := *f.root
	root.pairs = slices.DeleteFunc(slices.Clone(root.pairs), func(p pair) bool {
		return p.key.text == "path" || p.key.text == "mm"
	})
	root.pairs = append(root.pairs, pair{&node{place: n.place, text: "mm"}, n})
	f.root, f.changed = &root, true
	f.unsweepBelow("--mm", "path")
	f.unsweepBelow("--mm", "mm")
	return nil
}

// flagWords makes a node from a flag's argument. It returns nil if it has reported an error.
func flagWords(r *report, flag, words string) *node {
	src := &source{name: flag, flag: true, lines: []string{words}}
	n := &node{place: place{src, 1, 1, max(1, len([]rune(words)))}, text: words}
	switch {
	case strings.ContainsAny(words, "\n\r"):
		r.add(place{src, 1, 1, 1}, "more than one line", "")
	case strings.TrimSpace(words) == "":
		r.add(n.place, "no arguments", "")
	default:
		return n
	}
	return nil
}

// unsweepBelow stops sweeping a key and its parts, and notes that the flag did so.
func (f *File) unsweepBelow(flag string, parts ...string) {
	f.sweeps = slices.DeleteFunc(slices.Clone(f.sweeps), func(v variable) bool {
		below := v.sets(func(k keyPath) bool { return k.within(parts) })
		if below {
			f.notes = append(f.notes, fmt.Sprintf(
				"%s replaces %s, so the file's sweep of %s is left out",
				flag, strings.Join(parts, "."), v.key))
		}
		return below
	})
	nameVariables(f.sweeps)
}

// within reports whether the key begins with these parts. A * in the key matches any part.
func (k keyPath) within(parts []string) bool {
	if len(k.segments) < len(parts) {
		return false
	}
	for i, p := range parts {
		if s := k.segments[i].text; s != p && s != "*" {
			return false
		}
	}
	return true
}
