package formula

import (
	"fmt"
	"math"
)

// Env gives a formula its values.
type Env interface {
	// Variable returns the value in the cell that is looked at.
	Variable(name string) (float64, error)
	// Metric returns a metric, in the catalogue's unit.
	Metric(r Ref) (float64, error)
}

// Eval returns the value of the formula. A result that is not finite is an error of type *Error,
// and so are env's errors.
func (e *Expr) Eval(env Env) (float64, error) {
	v, err := e.root.eval(env)
	if err != nil {
		return 0, err
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s is not a number", e.source)
	}
	return v, nil
}

// term is a part of an expression.
type term interface {
	unit() Unit
	eval(env Env) (float64, error)
}

func walk(t term, visit func(term)) {
	visit(t)
	switch t := t.(type) {
	case *binaryTerm:
		walk(t.left, visit)
		walk(t.right, visit)
	case *callTerm:
		for _, a := range t.args {
			walk(a, visit)
		}
	}
}

type numberTerm struct {
	value float64
	of    Unit
}

func (n numberTerm) unit() Unit {
	if n.value == 0 && n.of == Pure {
		return Unknown // nothing of anything
	}
	return n.of
}

func (n numberTerm) eval(Env) (float64, error) { return n.value, nil }

type variableTerm struct {
	name string
	at   int
	of   Unit
}

func (v *variableTerm) unit() Unit { return v.of }

func (v *variableTerm) eval(env Env) (float64, error) { return env.Variable(v.name) }

type metricTerm struct {
	ref Ref
	at  int
	of  Unit
}

func (m *metricTerm) unit() Unit { return m.of }

func (m *metricTerm) eval(env Env) (float64, error) { return env.Metric(m.ref) }

type binaryTerm struct {
	op          string
	at          int
	left, right term
	of          Unit
}

func (b *binaryTerm) unit() Unit { return b.of }

func (b *binaryTerm) eval(env Env) (float64, error) {
	l, err := b.left.eval(env)
	if err != nil {
		return 0, err
	}
	r, err := b.right.eval(env)
	if err != nil {
		return 0, err
	}
	switch b.op {
	case "+":
		return l + r, nil
	case "-":
		return l - r, nil
	case "*":
		return l * r, nil
	case "/":
		return l / r, nil
	}
	return math.Pow(l, r), nil
}

type callTerm struct {
	f    function
	args []term
	of   Unit
}

func (c *callTerm) unit() Unit { return c.of }

func (c *callTerm) eval(env Env) (float64, error) {
	values := make([]float64, len(c.args))
	for i, a := range c.args {
		v, err := a.eval(env)
		if err != nil {
			return 0, err
		}
		values[i] = v
	}
	return c.f.value(values), nil
}
