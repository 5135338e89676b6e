package drill

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// expr is a condition over the names of tcp_info, with Python's operators.
// Values are float64, which hold every counter of a script exactly; true is 1.
type expr interface {
	eval(names map[string]float64) (float64, error)
}

type (
	literal float64
	name    string
	unary   struct {
		op string
		x  expr
	}
	operation struct {
		op   string
		x, y expr
	}
	// chain is a < b <= c, which means a < b and b <= c.
	chain struct {
		first expr
		ops   []string
		rest  []expr
	}
	function struct {
		name string
		args []expr
	}
)

func (l literal) eval(map[string]float64) (float64, error) { return float64(l), nil }

func (n name) eval(names map[string]float64) (float64, error) {
	v, ok := names[string(n)]
	if !ok {
		return 0, fmt.Errorf("unknown name %s", string(n))
	}
	return v, nil
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (u unary) eval(names map[string]float64) (float64, error) {
	x, err := u.x.eval(names)
	if u.op == "not" {
		return truth(x == 0), err
	}
	return -x, err
}

func (b operation) eval(names map[string]float64) (float64, error) {
	x, err := b.x.eval(names)
	if err != nil || b.op == "and" && x == 0 || b.op == "or" && x != 0 {
		return x, err
	}
	y, err := b.y.eval(names)
	if err != nil {
		return 0, err
	}
	switch b.op {
	case "and", "or":
		return y, nil
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "&":
		return float64(int64(x) & int64(y)), nil
	}
	if y == 0 {
		return 0, fmt.Errorf("division by zero")
	}
	switch b.op {
	case "/":
		return x / y, nil
	case "//":
		return math.Floor(x / y), nil
	default:
		return x - y*math.Floor(x/y), nil
	}
}

func (c chain) eval(names map[string]float64) (float64, error) {
	x, err := c.first.eval(names)
	for i, op := range c.ops {
		y, err := c.rest[i].eval(names)
		if err != nil {
			return 0, err
		}
		holds := map[string]bool{
			"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y,
		}[op]
		if !holds {
			return 0, nil
		}
		x = y
	}
	return 1, err
}

func (f function) eval(names map[string]float64) (float64, error) {
	var args []float64
	for _, a := range f.args {
		v, err := a.eval(names)
		if err != nil {
			return 0, err
		}
		args = append(args, v)
	}
	switch {
	case f.name == "abs" && len(args) == 1:
		return math.Abs(args[0]), nil
	case f.name == "min" && len(args) > 0:
		return slices.Min(args), nil
	case f.name == "max" && len(args) > 0:
		return slices.Max(args), nil
	}
	return 0, fmt.Errorf("unknown function %s of %d arguments", f.name, len(args))
}

// assertions reads the statements of a %{ … }% block: assertions, separated by newlines or
// semicolons.
func (p *parser) assertions(t token) (assertions, error) {
	var all assertions
	for i, line := range strings.Split(t.text, "\n") {
		if cut := strings.IndexByte(line, '#'); cut >= 0 {
			line = line[:cut]
		}
		for one := range strings.SplitSeq(line, ";") {
			one = strings.TrimSpace(one)
			if one == "" {
				continue
			}
			a, err := p.assertion(one, t.line+i)
			if err != nil {
				return nil, err
			}
			all = append(all, a)
		}
	}
	return all, nil
}

func (p *parser) assertion(text string, line int) (assertion, error) {
	l := lexer{file: p.file, text: text, line: line, python: true}
	tokens, err := l.all()
	if err != nil {
		return assertion{}, err
	}
	q := &parser{file: p.file, text: text, tokens: tokens}
	if !q.accept("assert") {
		return assertion{}, q.fail(q.peek(), "%s: want assert", q.peek())
	}
	a := assertion{line: line, text: text}
	if a.cond, err = q.expr(0); err != nil {
		return a, err
	}
	if q.accept(",") {
		if t := q.peek(); t.kind == tokString {
			q.pos++
		} else if a.note, err = q.expr(0); err != nil {
			return a, err
		}
	}
	if t := q.peek(); t.kind != tokEnd {
		return a, q.fail(t, "%s after the condition", t)
	}
	return a, nil
}

// levels are the binary operators, the lowest precedence first. Comparisons, which chain, are at
// compareLevel.
var levels = [][]string{
	{"or"},
	{"and"},
	{"==", "!=", "<=", ">=", "<", ">"},
	{"&"},
	{"+", "-"},
	{"*", "//", "/", "%"},
}

const compareLevel = 2

func (p *parser) expr(level int) (expr, error) {
	if p.depth++; p.depth > maxDepth*len(levels) {
		return nil, p.fail(p.peek(), "nested too deeply")
	}
	defer func() { p.depth-- }()
	if level == len(levels) {
		return p.operand()
	}
	if level == compareLevel && p.accept("not") {
		x, err := p.expr(level)
		return unary{"not", x}, err
	}
	x, err := p.expr(level + 1)
	if err != nil {
		return nil, err
	}
	c := chain{first: x}
	for {
		op := p.operator(levels[level])
		if op == "" {
			break
		}
		y, err := p.expr(level + 1)
		if err != nil {
			return nil, err
		}
		if level == compareLevel {
			c.ops, c.rest = append(c.ops, op), append(c.rest, y)
		} else {
			x = operation{op, x, y}
		}
	}
	if len(c.ops) > 0 {
		return c, nil
	}
	return x, nil
}

// operator takes one of the operators. An operator may consist of two signs.
func (p *parser) operator(ops []string) string {
	for _, op := range ops {
		if p.accept(op) {
			return op
		}
		if len(op) == 2 && p.is(op[:1]) && p.tokens[p.pos+1].text == op[1:] &&
			p.tokens[p.pos+1].kind == tokSign {
			p.pos += 2
			return op
		}
	}
	return ""
}

func (p *parser) operand() (expr, error) {
	t := p.take()
	switch {
	case t.kind == tokInt || t.kind == tokFloat:
		if n, err := strconv.ParseInt(t.text, 0, 64); err == nil {
			return literal(n), nil
		}
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, p.fail(t, "%s is not a number", t)
		}
		return literal(f), nil
	case t.kind == tokSign && t.text == "-":
		x, err := p.expr(len(levels))
		return unary{"-", x}, err
	case t.kind == tokSign && t.text == "(":
		x, err := p.expr(0)
		if err != nil {
			return nil, err
		}
		return x, p.expect(")")
	case t.kind == tokWord && p.accept("("):
		f := function{name: t.text}
		for {
			x, err := p.expr(0)
			if err != nil {
				return nil, err
			}
			f.args = append(f.args, x)
			if !p.accept(",") {
				return f, p.expect(")")
			}
		}
	case t.kind == tokWord:
		return name(t.text), nil
	}
	return nil, p.fail(t, "%s: want a value", t)
}
