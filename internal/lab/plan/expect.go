package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/formula"
)

type expectationDraft struct {
	Expectation
	where, value, within *node
	is                   []pair // keys of the expected value
}

var comparisons = map[string]formula.Operator{
	"is": formula.Equals, "at_least": formula.AtLeast, "at_most": formula.AtMost,
	"above": formula.Above, "below": formula.Below,
}

func (e *expectationDraft) keys() []key {
	formula := func(name string) key {
		return key{name, "", func(_ *decoder, n *node) {
			e.is = append(e.is, pair{&node{place: n.place, text: name}, n})
		}}
	}
	return []key{
		{"about", "", readText(&e.About)},
		{"where", "", readNode(&e.where)},
		{"value", "", readNode(&e.value)},
		formula("is"),
		formula("at_least"),
		formula("at_most"),
		formula("above"),
		formula("below"),
		{"within", "", readNode(&e.within)},
		{"published", "", readText(&e.Published)},
		{"why", "", readText(&e.Why)},
		{"source", "", readText(&e.Source)},
		{"because", "", readText(&e.Because)},
	}
}

const maxExpectations = 1000

func (d *decoder) expectations(n *node, x *Experiment) {
	if n.kind != list {
		d.bad(n, n.shown()+" is not a list of expectations", "a list such as [goodput > 1Mbit/s]")
		return
	}
	if len(n.items) > maxExpectations {
		d.bad(n, "too many expectations", "1000 at most")
		return
	}
	d.scope = d.newScope(x)
	x.Expect = slices.Clone(shared(d, n, strings.Join(d.scope.Flows, " "), func() []Expectation {
		return d.expected(n)
	}))
}

func (d *decoder) expected(n *node) (list []Expectation) {
	for _, item := range n.items {
		e := expectationDraft{}
		read := e.readClaim
		if item.kind == mapping {
			read = e.read
		}
		switch {
		case read(d, item):
			e.Line = item.line
			list = append(list, e.Expectation)
		case d.changed:
			d.report.inapplicable = append(d.report.inapplicable, item)
		}
	}
	return list
}

func (e *expectationDraft) readClaim(d *decoder, n *node) bool {
	text, ok := d.scalar(n, "an expectation such as goodput > 1Mbit/s")
	if !ok {
		return false
	}
	c, err := formula.CompileClaim(text, d.scope)
	if err != nil {
		d.formulaError(n, err)
	}
	e.Claim = c
	return err == nil
}

// formulaError reports an error in a formula. If a flag has changed the file, it reports nothing: a
// formula may name a variable or value that is no longer swept.
func (d *decoder) formulaError(n *node, err error) {
	var e *diagnostic.Error
	switch {
	case d.changed:
	case errors.As(err, &e):
		d.report.add(n.within(e.Col-1, e.Text), e.Msg, e.Want)
	default:
		d.bad(n, err.Error(), "")
	}
}

func (e *expectationDraft) read(d *decoder, n *node) bool {
	if !d.fill(n, "an expectation", e.keys()) {
		return false
	}
	const want = "{value: utilisation, is: reno_utilisation(0.1), within: 1%}"
	switch {
	case e.value == nil:
		d.bad(n, "the expectation has no value", want)
		return false
	case len(e.is) == 0:
		ok := e.readClaim(d, e.value) && e.readWhere(d)
		if ok && e.within != nil {
			d.bad(e.within, "within cannot be used with a comparison", "± 1% in the comparison")
			return false
		}
		return ok
	case len(e.is) > 1:
		d.bad(e.is[1].key, e.is[0].key.text+" and "+e.is[1].key.text+" cannot be used together",
			"only one of them")
		return false
	}
	value, ok := d.formula(e.value)
	is, alsoOK := d.formula(e.is[0].value)
	if !ok || !alsoOK || !e.readWhere(d) {
		return false
	}
	claim := fmt.Sprint(value, " ", comparisons[e.is[0].key.text], " ", is)
	var err error
	if e.Claim, err = formula.CompileClaim(claim, d.scope); err != nil {
		d.bad(e.is[0].value, fmt.Sprintf("%v and %v have different units", is, value),
			"the same unit")
		return false
	}
	return e.within == nil || e.readWithin(d, is)
}

func (d *decoder) formula(n *node) (*formula.Expr, bool) {
	text, ok := d.scalar(n, "a formula such as utilisation or 262.5ms")
	if !ok {
		return nil, false
	}
	e, err := formula.Compile(text, d.scope)
	if err != nil {
		d.formulaError(n, err)
	}
	return e, err == nil
}

func (e *expectationDraft) readWithin(d *decoder, is *formula.Expr) bool {
	if e.Claim.Operators[0] != formula.Equals {
		d.bad(e.within, "within needs the key is", "the key is, or no within")
		return false
	}
	text, ok := d.scalar(e.within, "a tolerance such as 1% or 5ms")
	if !ok {
		return false
	}
	c, err := formula.CompileClaim(is.String()+" = "+is.String()+" ± "+text, d.scope)
	if err != nil {
		d.bad(e.within, diagnostic.Quote(text)+" is not a tolerance of "+is.String(),
			"a tolerance such as 1%, or a value in the same unit")
		return false
	}
	e.Claim.Within, e.Claim.Absolute = c.Within, c.Absolute
	return true
}

func (e *expectationDraft) readWhere(d *decoder) bool {
	n := e.where
	if n == nil {
		return true
	}
	if n.kind != mapping {
		d.bad(n, n.shown()+" does not select cells", "a mapping such as {cc: reno}")
		return false
	}
	all := true
	for _, p := range n.pairs {
		s, ok := d.setting(p)
		e.Where, all = append(e.Where, s), all && ok
	}
	return all
}

// setting reads a value of a swept variable. A missing value is not an error if a flag has changed
// the file.
func (d *decoder) setting(p pair) (Setting, bool) {
	s := Setting{Value: label(p.value)}
	var all []string
	for i, v := range d.variables {
		known := d.scope.Variables[i]
		all = append(all, known.Name)
		if p.key.text != known.Name && p.key.text != v.key {
			continue
		}
		s.Key, s.Name = v.key, known.Name
		if slices.Contains(known.Values, s.Value) {
			return s, true
		}
		if !d.changed {
			d.bad(p.value, "no cell has "+diagnostic.Quote(s.Value), diagnostic.OneOf(known.Values))
		}
		return s, false
	}
	if !d.changed {
		d.bad(p.key, diagnostic.Quote(p.key.text)+" is not swept", diagnostic.OneOf(all))
	}
	return s, false
}

// newScope returns the names that formulas of a cell may use: the swept variables in order, the
// constants of the experiment, and the flows.
func (d *decoder) newScope(x *Experiment) *formula.Scope {
	s := &formula.Scope{}
	for _, v := range d.variables {
		s.Variables = append(s.Variables, v.scope)
	}
	s.Variables = append(s.Variables, constantNames...)
	for i := range x.Flows {
		s.Flows = append(s.Flows, x.Flows[i].Name)
	}
	return s
}

// scoped returns the variable as formulas see it.
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
