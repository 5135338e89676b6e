package formula

import (
	"math"
	"strings"
)

// Operator compares two values.
type Operator string

// These are the operators.
const (
	Below   Operator = "<"
	AtMost  Operator = "<="
	Above   Operator = ">"
	AtLeast Operator = ">="
	Equals  Operator = "="
)

// spellings lists the notations of operators, the longest first.
var spellings = []struct {
	text string
	op   Operator
}{
	{"<=", AtMost},
	{">=", AtLeast},
	{"==", Equals},
	{"≤", AtMost},
	{"≥", AtLeast},
	{"≈", Equals},
	{"<", Below},
	{">", Above},
	{"=", Equals},
}

// Claim is one comparison, or a chain such as a > b > c.
type Claim struct {
	// Terms are the operands. There is one more than there are Operators.
	Terms     []*Expr
	Operators []Operator
	// Within is the tolerance of an equality: a share of the right side, or, if Absolute is set, a
	// value in the right side's unit.
	Within   float64
	Absolute bool
}

// String returns the terms as written, with the operators between them.
func (c *Claim) String() string {
	var b strings.Builder
	for i, t := range c.Terms {
		if i > 0 {
			b.WriteString(" " + string(c.Operators[i-1]) + " ")
		}
		b.WriteString(t.String())
	}
	return b.String()
}

const maxTerms = 12

// CompileClaim parses one or more comparisons. A tolerance may follow the last one: "x = 3 ± 1%" or
// "x = 3s +- 10ms". Errors are of type *diagnostic.Error.
func CompileClaim(source string, scope *Scope) (*Claim, error) {
	p := parser{scanner: scanner{text: source}, scope: scope}
	c := &Claim{Terms: []*Expr{p.expr()}}
	for p.err == nil {
		p.space()
		at := p.at
		op := p.operator()
		if op == "" {
			break
		}
		if len(c.Terms) == maxTerms {
			p.fail(at, "too many comparisons", "")
			break
		}
		end := p.at
		next := p.expr()
		if p.err == nil && !fit(c.Terms[len(c.Terms)-1].Unit(), next.Unit()) {
			p.at = end
			p.fail(at, "one side is "+nameOf(c.Terms[len(c.Terms)-1].Unit())+" and the other is "+
				nameOf(next.Unit()), "the same unit")
		}
		c.Terms, c.Operators = append(c.Terms, next), append(c.Operators, op)
	}
	if p.err == nil && len(c.Operators) == 0 {
		p.fail(p.at, "the comparison has only one side", "one of < <= = >= >")
	}
	p.tolerance(c)
	p.end()
	if p.err != nil {
		return nil, p.err
	}
	return c, nil
}

func (p *parser) operator() Operator {
	for _, s := range spellings {
		if p.take(s.text) {
			return s.op
		}
	}
	return ""
}

func (p *parser) tolerance(c *Claim) {
	if p.err != nil {
		return
	}
	p.space()
	at := p.at
	if p.first([]string{"±", "+-", "within "}) == "" {
		return
	}
	end := p.at
	p.space()
	from := p.at
	text := p.number()
	v, unit, ok := Number(text)
	last := c.Terms[len(c.Terms)-1].Unit()
	switch {
	case c.Operators[len(c.Operators)-1] != Equals:
		p.at = end
		p.fail(at, "a tolerance needs the operator =", "x = 3 ± 1%")
	case !ok:
		p.fail(from, "the tolerance is not a number", "a tolerance such as 1% or 5ms")
	case strings.HasSuffix(text, "%"):
		c.Within = v
	case !fit(unit, last):
		p.fail(from, "the tolerance is "+nameOf(unit)+" and the right side is "+nameOf(last),
			"the same unit, or a percentage")
	default:
		c.Within, c.Absolute = v, true
	}
}

// Holds reports whether the values of the terms satisfy the claim.
func (c *Claim) Holds(values []float64) bool {
	for i, op := range c.Operators {
		if !c.holds(values[i], op, values[i+1]) {
			return false
		}
	}
	return true
}

func (c *Claim) holds(left float64, op Operator, right float64) bool {
	switch op {
	case Below:
		return left < right
	case AtMost:
		return left <= right
	case Above:
		return left > right
	case AtLeast:
		return left >= right
	case Equals:
	}
	within := c.Within
	if !c.Absolute {
		within *= math.Abs(right)
	}
	return math.Abs(left-right) <= within
}
