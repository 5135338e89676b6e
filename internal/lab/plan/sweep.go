package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// maxValues limits the values of a variable, and maxVariables limits the number of variables.
const (
	maxValues    = 10_000
	maxVariables = 16
)

func readSweep(r *report, n *node) []variable {
	if n.kind != mapping {
		r.bad(n, n.shown()+" is not a sweep", "a mapping such as {flows.0.cc: [reno, cubic]}")
		return nil
	}
	if len(n.pairs) > maxVariables {
		r.bad(n, "too many keys are swept", strconv.Itoa(maxVariables)+" keys at most")
		return nil
	}
	var out []variable
	for _, p := range n.pairs {
		if v, ok := readVariable(r, p.key, p.value); ok {
			out = append(out, v)
		}
	}
	return out
}

// readVariable reads a variable in any of its forms: a key with a list of values, a name with keys
// that have the same values, or a name with cases that set several keys.
func readVariable(r *report, key, value *node) (v variable, ok bool) {
	v = variable{key: key.text, at: key.place, source: pair{key, value}}
	k := splitKey(key.text, key.place)
	switch {
	case key.quoted:
		k = splitKey(key.text, place{key.src, key.line, key.col + 1, key.width})
	case value.kind == list:
	case value.kind == mapping && value.get("values") != nil:
		ok = v.readNamed(r, value)
		return v, ok
	case value.kind == mapping:
		ok = v.readCases(r, value)
		return v, ok
	}
	if value.kind != list {
		r.bad(value, value.shown()+" is not a list of values", "a list such as [reno, cubic]")
		return v, false
	}
	ok = v.readPoints(r, []keyPath{k}, value)
	return v, ok
}

func (v *variable) readPoints(r *report, keys []keyPath, values *node) bool {
	if len(values.items) == 0 || len(values.items) > maxValues {
		r.bad(values, strconv.Itoa(len(values.items))+" values", "1 to "+strconv.Itoa(maxValues))
		return false
	}
	for _, k := range keys {
		if !sweepable(r, k) {
			return false
		}
	}
	seen := map[string]bool{}
	for _, item := range values.items {
		if item.empty() {
			r.bad(item, "an empty value", "a value")
			return false
		}
		p := point{text: label(item), at: item.place}
		if seen[p.text] {
			r.bad(item, diagnostic.Quote(p.text)+" is already swept", "different values")
			return false
		}
		seen[p.text] = true
		for _, k := range keys {
			p.changes = append(p.changes, change{k, item})
		}
		v.values = append(v.values, p)
	}
	return true
}

// sweepable rejects keys that must be the same in all cells.
func sweepable(r *report, k keyPath) bool {
	first := k.segments[0]
	if slices.Contains([]string{"sweep", "expect", "name", "about"}, first.text) {
		r.bad(first, diagnostic.Quote(first.text)+" cannot be swept", "")
		return false
	}
	return knownFirst(r, k)
}

// readNamed reads {key: path.down.loss, values: [1%, 2%]}. The key can be a list.
func (v *variable) readNamed(r *report, n *node) bool {
	r.unknownKeys(n, "a sweep", []string{"key", "values"})
	var keys []keyPath
	switch k := n.get("key"); {
	case k == nil:
		r.bad(n, "values need a key", "key: path.down.loss")
		return false
	case k.kind == list:
		for _, item := range k.items {
			keys = append(keys, splitKey(item.text, item.place))
		}
	default:
		keys = append(keys, splitKey(k.text, k.place))
	}
	values := n.get("values")
	if len(keys) == 0 || values.kind != list {
		r.bad(values, values.shown()+" is not a list of values", "a list such as [1%, 2%]")
		return false
	}
	v.name, v.named = v.key, true
	return v.readPoints(r, keys, values)
}

// readCases reads {a: {flows.0.cc: reno, mtu: 1500}, b: {…}}.
func (v *variable) readCases(r *report, n *node) bool {
	v.name, v.named = v.key, true
	if len(n.pairs) == 0 || len(n.pairs) > maxValues {
		r.bad(n, fmt.Sprintf("%d cases", len(n.pairs)), "a mapping such as {a: {flows.0.cc: reno}}")
		return false
	}
	for _, p := range n.pairs {
		if p.value.kind != mapping {
			r.bad(p.value, p.value.shown()+" is not a case",
				"a mapping of keys such as {flows.0.cc: reno}")
			return false
		}
		one := point{text: p.key.text, at: p.key.place}
		for _, set := range p.value.pairs {
			k := splitKey(set.key.text, set.key.place)
			if !sweepable(r, k) {
				return false
			}
			one.changes = append(one.changes, change{k, set.value})
		}
		v.values = append(v.values, one)
	}
	return true
}
