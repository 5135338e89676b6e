package plan

import (
	"errors"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/mistake"
)

// expectOf is an expectation in the making.
type expectOf struct {
	Expectation
	where, value, within *node
	is                   []pair // the keys that say what it should be
}

// compares says which key is which relation.
var compares = map[string]Relation{
	"is": Equals, "at_least": AtLeast, "at_most": AtMost, "above": Above, "below": Below,
}

// formulaKey reads one of the keys that compare.
func formulaKey(name string) key[expectOf] {
	return key[expectOf]{name, "", func(_ *decoder, n *node, e *expectOf) {
		e.is = append(e.is, pair{&node{place: n.place, text: name}, n})
	}}
}

var expectKeys = []key[expectOf]{
	{"about", "", func(d *decoder, n *node, e *expectOf) { d.text(n, &e.About) }},
	{"where", "", func(_ *decoder, n *node, e *expectOf) { e.where = n }},
	{"value", "", func(_ *decoder, n *node, e *expectOf) { e.value = n }},
	formulaKey("is"),
	formulaKey("at_least"),
	formulaKey("at_most"),
	formulaKey("above"),
	formulaKey("below"),
	{"within", "", func(_ *decoder, n *node, e *expectOf) { e.within = n }},
	{"published", "", func(d *decoder, n *node, e *expectOf) { d.text(n, &e.Published) }},
	{"why", "", func(d *decoder, n *node, e *expectOf) { d.text(n, &e.Why) }},
	{"source", "", func(d *decoder, n *node, e *expectOf) { d.text(n, &e.Source) }},
	{"because", "", func(d *decoder, n *node, e *expectOf) { d.text(n, &e.Because) }},
}

const maxExpectations = 1000

// expectations reads what should come out.
func (d *decoder) expectations(n *node, x *Experiment) {
	if n.kind != list {
		d.bad(n, d.shown(n)+" is not a list of expectations", "a list such as [goodput > 1Mbit/s]")
		return
	}
	if len(n.items) > maxExpectations {
		d.bad(n, "too many expectations", "1000 at most")
		return
	}
	scope := d.scope(x)
	for _, item := range n.items {
		var e Expectation
		var ok bool
		if item.kind == mapping {
			e, ok = d.expectation(item, scope)
		} else {
			e, ok = d.claim(item, scope)
		}
		switch {
		case ok:
			e.Line = item.line
			x.Expect = append(x.Expect, e)
		case d.changed:
			d.report.moot = append(d.report.moot, item)
		}
	}
}

// claim reads an expectation of one line.
func (d *decoder) claim(n *node, scope *formula.Scope) (Expectation, bool) {
	const want = "an expectation such as goodput > 1Mbit/s"
	text, ok := d.scalar(n, want)
	if !ok {
		return Expectation{}, false
	}
	c, err := formula.CompileClaim(text, scope)
	if err != nil {
		d.formulaError(n, err)
		return Expectation{}, false
	}
	if len(c.Operators) > 1 {
		return Expectation{
			Value: strings.TrimSpace(text), Relation: Holds, Within: c.Within, Absolute: c.Absolute,
		}, true
	}
	return Expectation{
		Value: c.Terms[0].String(), Is: c.Terms[1].String(), Relation: relations[c.Operators[0]],
		Within: c.Within, Absolute: c.Absolute,
	}, true
}

// relations are those of operators.
var relations = map[formula.Operator]Relation{
	formula.Equals: Equals, formula.AtLeast: AtLeast, formula.AtMost: AtMost,
	formula.Above: Above, formula.Below: Below,
}

// formulaError reports a mistake in a formula. After a flag has changed what is swept, what no
// longer can be said is not said.
func (d *decoder) formulaError(n *node, err error) {
	var e *formula.Error
	switch {
	case d.changed:
	case errors.As(err, &e):
		word := e.Source[e.At:min(len(e.Source), e.At+e.Width)]
		d.report.add(n.within(e.Source, e.At, word, 0), e.Msg, e.Want)
	default:
		d.bad(n, err.Error(), "")
	}
}

// expectation reads one that is a mapping.
func (d *decoder) expectation(n *node, scope *formula.Scope) (Expectation, bool) {
	var e expectOf
	if !fill(d, n, "an expectation", expectKeys, &e) {
		return e.Expectation, false
	}
	const want = "{value: utilisation, is: reno_utilisation(0.1), within: 1%}"
	switch {
	case e.value == nil:
		d.bad(n, "an expectation without a value", want)
		return e.Expectation, false
	case len(e.is) == 0:
		return d.wholeClaim(&e, scope)
	case len(e.is) > 1:
		d.bad(e.is[1].key, e.is[0].key.text+" and "+e.is[1].key.text+" exclude each other",
			"one of them")
		return e.Expectation, false
	}
	e.Relation = compares[e.is[0].key.text]
	value, ok := d.formula(e.value, scope)
	is, alsoOK := d.formula(e.is[0].value, scope)
	if !ok || !alsoOK || !d.where(&e, scope) {
		return e.Expectation, false
	}
	e.Value, e.Is = value.String(), is.String()
	if _, err := formula.CompileClaim(e.Value+" = "+e.Is, scope); err != nil {
		d.bad(e.is[0].value, e.Is+" is not in the unit of "+e.Value, "one unit")
		return e.Expectation, false
	}
	return e.Expectation, d.tolerance(&e, is)
}

// wholeClaim reads a mapping whose value is a comparison already.
func (d *decoder) wholeClaim(e *expectOf, scope *formula.Scope) (Expectation, bool) {
	c, ok := d.claim(e.value, scope)
	if !ok || !d.where(e, scope) {
		return c, false
	}
	if e.within != nil {
		d.bad(e.within, "a tolerance apart from its comparison",
			"± 1% in the value, or is beside it")
		return c, false
	}
	c.About, c.Where, c.Published, c.Why = e.About, e.Where, e.Published, e.Why
	c.Source, c.Because = e.Source, e.Because
	return c, true
}

func (d *decoder) formula(n *node, scope *formula.Scope) (*formula.Expr, bool) {
	text, ok := d.scalar(n, "a formula such as utilisation or 262.5ms")
	if !ok {
		return nil, false
	}
	e, err := formula.Compile(text, scope)
	if err != nil {
		d.formulaError(n, err)
	}
	return e, err == nil
}

// tolerance reads how far the value may be off.
func (d *decoder) tolerance(e *expectOf, is *formula.Expr) bool {
	n := e.within
	switch {
	case n == nil:
		return true
	case e.Relation != Equals:
		d.bad(n, "a tolerance of what need not be equal", "is, or no within")
		return false
	}
	text, ok := d.scalar(n, "a tolerance such as 1% or 5ms")
	if !ok {
		return false
	}
	c, err := formula.CompileClaim(is.String()+" = "+is.String()+" ± "+text, d.scopeNow)
	if err != nil {
		d.bad(n, mistake.Quote(text)+" is not a tolerance of "+is.String(),
			"one such as 1%, or in its unit")
		return false
	}
	e.Within, e.Absolute = c.Within, c.Absolute
	return true
}

// where reads which cells an expectation is about.
func (d *decoder) where(e *expectOf, scope *formula.Scope) bool {
	n := e.where
	if n == nil {
		return true
	}
	if n.kind != mapping {
		d.bad(n, d.shown(n)+" does not pick cells", "a mapping such as {cc: reno}")
		return false
	}
	before := len(d.report.errs)
	for _, p := range n.pairs {
		if d.changed && !d.picks(p, scope, false) {
			return false
		}
		if d.picks(p, scope, true) {
			e.Where = append(e.Where, d.setting(p, scope))
		}
	}
	return len(d.report.errs) == before
}

// picks reports whether a cell has such a value of what is swept.
func (d *decoder) picks(p pair, scope *formula.Scope, tell bool) bool {
	var all []string
	for i, v := range d.variables {
		name := scope.Variables[i].Name
		all = append(all, name)
		if p.key.text != name && p.key.text != v.key {
			continue
		}
		for _, value := range v.values {
			if value.text == label(p.value) {
				return true
			}
		}
		if tell {
			d.bad(p.value, "there is no cell with "+mistake.Quote(label(p.value)),
				oneOf(scope.Variables[i].Values))
		}
		return false
	}
	if tell {
		d.bad(p.key, mistake.Quote(p.key.text)+" is not swept", oneOf(all))
	}
	return false
}

// setting is the pair of a name and a value with the key that the name is for.
func (d *decoder) setting(p pair, scope *formula.Scope) Setting {
	s := Setting{Value: label(p.value)}
	for i, v := range d.variables {
		if name := scope.Variables[i].Name; p.key.text == name || p.key.text == v.key {
			s.Key, s.Name = v.key, name
		}
	}
	return s
}

// scope is what formulas of a cell may name: what is swept, first and in order, and what the
// path is.
func (d *decoder) scope(x *Experiment) *formula.Scope {
	s := &formula.Scope{}
	for _, v := range d.variables {
		s.Variables = append(s.Variables, v.scope)
	}
	s.Variables = append(s.Variables, constantNames...)
	for i := range x.Flows {
		s.Flows = append(s.Flows, x.Flows[i].Name)
	}
	d.scopeNow = s
	return s
}

// scoped is a variable as formulas know it.
func (v *variable) scoped() formula.Variable {
	out := formula.Variable{Name: v.name}
	for i, p := range v.values {
		_, unit, ok := formula.Number(p.text)
		if !ok || i > 0 && unit != out.Unit {
			unit = formula.Unknown
		}
		out.Unit = unit
		out.Values = append(out.Values, p.text)
	}
	return out
}
