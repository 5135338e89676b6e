package plan

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// keyPath is the path to a value: "flows.0.cc".
type keyPath struct {
	text     string
	segments []*node
}

const maxSegments = 16

func splitKey(text string, p place) keyPath {
	k := keyPath{text: text}
	at := p.col
	for s := range strings.SplitSeq(text, ".") {
		n := utf8.RuneCountInString(s)
		k.segments = append(k.segments, &node{
			place: place{p.src, p.line, at, max(n, 1)}, text: s, quoted: true,
		})
		at += n + 1
	}
	return k
}

func (n *node) find(k keyPath) *node {
	for _, seg := range k.segments {
		if n == nil {
			return nil
		}
		if i, err := strconv.Atoi(seg.text); err == nil && n.kind == list && i >= 0 &&
			i < len(n.items) {
			n = n.items[i]
			continue
		}
		n = n.get(seg.text)
	}
	return n
}

// with returns the document root with the value at k changed. It returns nil if it has reported an
// error.
func (r *report) with(root *node, k keyPath, value *node) *node {
	before := r.added
	if len(k.segments) > maxSegments {
		r.bad(k.segments[maxSegments], "the key has too many parts", "")
		return nil
	}
	out := r.put(root, root, k.segments, value)
	if r.added > before {
		return nil
	}
	return out
}

func (r *report) put(root, n *node, path []*node, value *node) *node {
	if len(path) == 0 {
		return value
	}
	seg := path[0]
	if seg.text == "" {
		r.bad(seg, "a part of the key is missing", "a key such as flows.0.cc")
		return n
	}
	switch n.kind {
	case list:
		return r.putItem(root, n, path, value)
	case mapping:
		return r.putPair(root, n, path, value)
	case scalar:
	}
	if down := root.get("path").get("down"); n.plain("same") && down != nil {
		return r.put(root, down, path, value)
	}
	r.bad(seg, diagnostic.Quote(seg.text)+" cannot be set in "+diagnostic.Quote(n.text),
		"the whole key before it")
	return n
}

// putPair changes or adds a key of a mapping. The decoder checks later whether the key is known.
func (r *report) putPair(root, n *node, path []*node, value *node) *node {
	out := *n
	out.pairs = slices.Clone(n.pairs)
	seg := path[0]
	if seg.text == "*" && n == root.get("path") {
		for _, side := range []string{"down", "up"} {
			if side == "up" && n.get("up").plain("same") {
				continue
			}
			named := *seg
			named.text = side
			out = *r.putPair(root, &out, append([]*node{&named}, path[1:]...), value)
		}
		return &out
	}
	for i, p := range out.pairs {
		if p.key.text == seg.text {
			out.pairs[i].value = r.put(root, p.value, path[1:], value)
			return &out
		}
	}
	if len(path) > 1 && path[1].index() {
		r.bad(seg, diagnostic.Quote(seg.text)+" is not a list in the file", "a key of the file")
		return n
	}
	fresh := &node{place: seg.place, kind: mapping}
	if seg.text == "up" && n == root.get("path") && len(path) > 1 {
		fresh.pairs = defaultUp(seg.place).pairs
	}
	out.pairs = append(out.pairs, pair{seg, r.put(root, fresh, path[1:], value)})
	return &out
}

// index reports whether a part of a key selects items of a list.
func (n *node) index() bool {
	_, err := strconv.Atoi(n.text)
	return err == nil || n.text == "*"
}

// putItem changes an item of a list, given by its index or, in a list of flows, by its name; *
// changes all items.
func (r *report) putItem(root, n *node, path []*node, value *node) *node {
	out := *n
	out.items = slices.Clone(n.items)
	seg, found := path[0], false
	i, err := strconv.Atoi(seg.text)
	for at, item := range n.items {
		if seg.text == "*" || err == nil && i == at || item.get("name").plain(seg.text) {
			out.items[at] = r.put(root, item, path[1:], value)
			found = true
		}
	}
	switch {
	case found:
		return &out
	case err == nil:
		r.bad(seg, "the list has no entry "+seg.text,
			"an index from 0 to "+strconv.Itoa(len(n.items)-1))
	default:
		r.bad(seg, "no entry of the list has the name "+diagnostic.Quote(seg.text),
			"an index from 0, a name, or *")
	}
	return n
}
