package plan

import (
	"slices"
	"strings"
)

// Resolved returns the file with the flags' changes and with all defaults. Its cells are the same.
func (f *File) Resolved() []byte {
	out := &node{kind: mapping}
	for _, k := range new(draft).keys() {
		v := f.root.get(k.name)
		switch {
		case k.name == "sweep":
			v = f.swept()
		case v == nil && k.initial != "":
			v = &node{text: k.initial}
		case v == nil:
		case k.name == "expect" && v.kind == list && f.changed:
			v = f.remainingExpectations(v)
		case k.name == "path" && v.kind == mapping:
			v = f.pathWithDefaults(v)
		case k.name == "flows" && v.kind == list:
			v = f.flowsWithDefaults(v)
		}
		if v != nil {
			out.pairs = append(out.pairs, pair{&node{text: k.name}, v})
		}
	}
	var b strings.Builder
	block(&b, out, 0)
	return []byte(b.String())
}

// remainingExpectations removes the expectations that do not apply after the flags' changes: Parse
// would reject them. It returns nil if no expectation remains.
func (f *File) remainingExpectations(n *node) *node {
	r := &report{}
	f.probe(r)
	out := *n
	out.items = slices.DeleteFunc(slices.Clone(n.items), func(item *node) bool {
		return slices.Contains(r.inapplicable, item)
	})
	if len(out.items) == 0 {
		return nil
	}
	return &out
}

// swept returns the file's sweep with the flags' changes.
func (f *File) swept() *node {
	if len(f.sweeps) == 0 {
		return nil
	}
	out := &node{kind: mapping}
	for _, v := range f.sweeps {
		out.pairs = append(out.pairs, v.source)
	}
	return out
}

// touches reports whether a swept variable changes a key or a key's parent.
func (f *File) touches(parts ...string) bool {
	return slices.ContainsFunc(f.sweeps, func(v variable) bool {
		return v.sets(func(k keyPath) bool { return k.covers(parts) })
	})
}

// covers reports whether these parts begin with the key. A * matches any part.
func (k keyPath) covers(parts []string) bool {
	if len(k.segments) > len(parts) {
		return false
	}
	for i, seg := range k.segments {
		if seg.text != parts[i] && parts[i] != "*" && seg.text != "*" {
			return false
		}
	}
	return true
}

// pathWithDefaults adds the defaults of the direction up and of queues.
func (f *File) pathWithDefaults(n *node) *node {
	out := *n
	out.pairs = slices.Clone(n.pairs)
	if n.get("up") == nil && !f.touches("path", "up") {
		out.pairs = append(out.pairs, pair{&node{text: "up"}, defaultUp(place{})})
	}
	for i, p := range out.pairs {
		side := p.value
		if side.kind != mapping || side.get("queue") != nil ||
			side.get("rate") == nil && side.get("trace") == nil ||
			side.get("rate").plain("none") || side.get("rate").plain("same") ||
			side.get("trace").plain("none") || side.get("trace").plain("same") ||
			f.touches("path", p.key.text, "rate") || f.touches("path", p.key.text, "trace") {
			continue
		}
		whole := *side
		whole.pairs = append(slices.Clone(side.pairs), pair{
			&node{text: "queue"}, &node{text: defaultQueue},
		})
		out.pairs[i].value = &whole
	}
	return &out
}

func (f *File) flowsWithDefaults(n *node) *node {
	out := *n
	out.items = slices.Clone(n.items)
	for i, item := range n.items {
		if item.kind != mapping {
			continue
		}
		keys := new(flowDraft).keys()
		if !f.touches("flows", "*", "protocol") {
			keys = append(keys, new(flowDraft).keysOf(protocolOf(item))...)
		}
		whole := *item
		whole.pairs = slices.Clone(item.pairs)
		for _, k := range keys {
			if k.initial != "" && item.get(k.name) == nil {
				whole.pairs = append(whole.pairs, pair{&node{text: k.name}, &node{text: k.initial}})
			}
		}
		out.items[i] = &whole
	}
	return &out
}
