package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/mistake"
)

// maxValues bounds one variable, maxVariables the whole.
const (
	maxValues    = 10_000
	maxVariables = 16
)

// sweep reads what is swept.
func (d *decoder) sweep(n *node) []variable {
	if n.kind != mapping {
		d.bad(n, d.shown(n)+" is not a sweep", "a mapping such as {flows.0.cc: [reno, cubic]}")
		return nil
	}
	if len(n.pairs) > maxVariables {
		d.bad(n, "too much that is swept", strconv.Itoa(maxVariables)+" keys at most")
		return nil
	}
	var out []variable
	for _, p := range n.pairs {
		if v, ok := d.variable(p.key, p.value); ok {
			out = append(out, v)
		}
	}
	return out
}

// variable reads one, in any of its forms: a key with a list of values, a name with the keys
// that it stands for and their values, or a name with cases, each of which sets several keys.
func (d *decoder) variable(key, value *node) (variable, bool) {
	v := variable{key: key.text, at: key.place, source: pair{key, value}}
	k := splitKey(key.text, key.place)
	switch {
	case key.quoted:
		k = splitKey(key.text, place{key.src, key.line, key.col + 1, key.width})
	case value.kind == list:
	case value.kind == mapping && value.get("values") != nil:
		return d.namedVariable(v, value)
	case value.kind == mapping:
		return d.cases(v, value)
	}
	if value.kind != list {
		d.bad(value, d.shown(value)+" is not a list of values", "a list such as [reno, cubic]")
		return v, false
	}
	return d.points(v, []keyPath{k}, value)
}

// points makes the values of a list, each for all of the keys.
func (d *decoder) points(v variable, keys []keyPath, values *node) (variable, bool) {
	if len(values.items) == 0 || len(values.items) > maxValues {
		d.bad(values, strconv.Itoa(len(values.items))+" values", "1 to "+strconv.Itoa(maxValues))
		return v, false
	}
	for _, k := range keys {
		if !d.sweepable(k) {
			return v, false
		}
	}
	seen := map[string]bool{}
	for _, item := range values.items {
		if item.empty() {
			d.bad(item, "a value that is nothing", "a value")
			return v, false
		}
		p := point{text: label(item), at: item.place}
		if seen[p.text] {
			d.bad(item, mistake.Quote(p.text)+" is swept already", "values that differ")
			return v, false
		}
		seen[p.text] = true
		for _, k := range keys {
			p.changes = append(p.changes, change{k, item})
		}
		v.values = append(v.values, p)
	}
	return v, true
}

// sweepable refuses the keys that are one for all cells.
func (d *decoder) sweepable(k keyPath) bool {
	first := k.segments[0]
	known := names(experimentKeys)
	switch {
	case first.text == "sweep" || first.text == "expect" || first.text == "name" ||
		first.text == "about":
		d.bad(first, mistake.Quote(first.text)+" cannot be swept", "")
		return false
	case !slices.Contains(known, first.text):
		d.strangers(&node{pairs: []pair{{first, first}}}, "an experiment", known)
		return false
	}
	return true
}

// namedVariable reads {key: path.down.loss, values: [1%, 2%]}, where key can be a list.
func (d *decoder) namedVariable(v variable, n *node) (variable, bool) {
	d.strangers(n, "a sweep", []string{"key", "values"})
	var keys []keyPath
	switch k := n.get("key"); {
	case k == nil:
		d.bad(n, "values without the key that they are for", "key: path.down.loss")
		return v, false
	case k.kind == list:
		for _, item := range k.items {
			keys = append(keys, splitKey(item.text, item.place))
		}
	default:
		keys = append(keys, splitKey(k.text, k.place))
	}
	values := n.get("values")
	if len(keys) == 0 || values.kind != list {
		d.bad(values, d.shown(values)+" is not a list of values", "a list such as [1%, 2%]")
		return v, false
	}
	v.name, v.named = v.key, true
	return d.points(v, keys, values)
}

// cases reads {a: {flows.0.cc: reno, mtu: 1500}, b: {…}}.
func (d *decoder) cases(v variable, n *node) (variable, bool) {
	v.name, v.named = v.key, true
	if len(n.pairs) == 0 || len(n.pairs) > maxValues {
		d.bad(n, fmt.Sprintf("%d cases", len(n.pairs)), "a mapping such as {a: {flows.0.cc: reno}}")
		return v, false
	}
	for _, p := range n.pairs {
		if p.value.kind != mapping {
			d.bad(p.value, d.shown(p.value)+" is not a case",
				"a mapping of keys such as {flows.0.cc: reno}")
			return v, false
		}
		one := point{text: p.key.text, at: p.key.place}
		for _, set := range p.value.pairs {
			k := splitKey(set.key.text, set.key.place)
			if !d.sweepable(k) {
				return v, false
			}
			one.changes = append(one.changes, change{k, set.value})
		}
		v.values = append(v.values, one)
	}
	return v, true
}
