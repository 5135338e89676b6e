package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// facet is a part of a direction that netem's arguments can set. It has the keys for the same part,
// whether the arguments set the part, and how to copy it.
type facet struct {
	keys []string
	said bool
	take func()
}

// facets returns the parts of c that netem's arguments can set.
func (l *link) facets(c *netem.Config) []facet {
	return []facet{
		{[]string{"delay"}, c.Delay != 0, func() { l.Delay = c.Delay }},
		{[]string{"jitter"}, c.Jitter != nil, func() {
			l.Jitter, l.Overtaking = c.Jitter, c.Overtaking
			l.Correlation.Jitter = c.Correlation.Jitter
		}},
		{[]string{"rate", "trace", "overhead"}, c.Rate != nil, func() {
			l.Rate, l.Overhead = c.Rate, c.Overhead
		}},
		{[]string{"queue"}, c.Queue != nil, func() { l.Queue = c.Queue }},
		{[]string{"loss"}, c.Loss != nil, func() { l.Loss = c.Loss }},
		{[]string{"duplicate"}, c.Duplicate != 0, func() {
			l.Duplicate, l.Correlation.Duplicate = c.Duplicate, c.Correlation.Duplicate
		}},
		{[]string{"corrupt"}, c.Corrupt.Share != 0, func() {
			l.Corrupt, l.Correlation.Corrupt = c.Corrupt, c.Correlation.Corrupt
		}},
		{[]string{"truncate"}, c.Truncate != 0, func() { l.Truncate = c.Truncate }},
		{[]string{"reorder"}, c.Reorder != netem.Reorder{}, func() {
			l.Reorder, l.Correlation.Reorder = c.Reorder, c.Correlation.Reorder
		}},
		{[]string{"policer"}, c.Policer != nil, func() { l.Policer = c.Policer }},
	}
}

// readNetem reads a direction from the arguments of tc-netem(8). Other keys of the mapping must not
// set the same parts.
func (l *link) readNetem(d *decoder, n, others *node) {
	cfg, ok := netemWords(d, n)
	if !ok {
		return
	}
	for _, f := range l.facets(&cfg) {
		if !f.said {
			continue
		}
		for _, k := range f.keys {
			if v := others.get(k); v != nil {
				d.bad(v, k+" is also set in netem's arguments", "only one of them")
			}
		}
		f.take()
	}
	l.MaxPackets, l.MaxBytes = max(l.MaxPackets, cfg.MaxPackets), max(l.MaxBytes, cfg.MaxBytes)
	if cfg.Rate != nil {
		l.mean = meanRate(cfg.Rate, d.duration)
	}
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

// Netem applies arguments of tc-netem(8), such as "delay 40ms loss 1%", to the direction of the
// data. They replace the parts of the link that they name, swept or not; other parts do not change.
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
		d.bad(n, "netem's arguments need path", "a file with path instead of mm")
	}
	if len(r.errs) > 0 {
		return r.err()
	}
	down := &node{place: n.place, kind: mapping}
	var said []string
	for _, f := range new(link).facets(&cfg) {
		if f.said {
			said = append(said, f.keys...)
		}
	}
	if old := path.get("down"); old != nil && old.kind == mapping {
		down.pairs = slices.DeleteFunc(slices.Clone(old.pairs), func(p pair) bool {
			return p.key.text == "netem" || slices.Contains(said, p.key.text)
		})
	}
	down.pairs = append(down.pairs, pair{&node{place: n.place, text: "netem"}, n})
	rep := replacer{report: r}
	root := rep.with(f.root, splitKey("path.down", n.place), down)
	if root == nil {
		return r.err()
	}
	f.root, f.changed = root, true
	for _, k := range said {
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
		r.add(n.place, "without words", "")
	default:
		return n
	}
	return nil
}

// unsweepBelow stops sweeping a key and its parts, and notes that the flag did so.
func (f *File) unsweepBelow(flag string, parts ...string) {
	f.sweeps = slices.DeleteFunc(slices.Clone(f.sweeps), func(v variable) bool {
		for _, p := range v.values {
			for _, c := range p.changes {
				if c.key.within(parts) {
					f.notes = append(f.notes, fmt.Sprintf(
						"%s replaces %s, so the file's sweep of %s is left out",
						flag, strings.Join(parts, "."), v.key))
					return true
				}
			}
		}
		return false
	})
	nameVariables(f.sweeps)
}

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
