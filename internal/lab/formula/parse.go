package formula

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Scope lists the names that a formula may use.
type Scope struct {
	// Variables are the names with a value in each cell, such as the swept ones.
	Variables []Variable
	// Flows are the names of the flows.
	Flows []string
	// parameters means that the variables are a function's parameters: they hide metrics of the
	// same name.
	parameters bool
}

// Variable is a name that has a value in each cell.
type Variable struct {
	Name string
	Unit Unit
	// Values are its values in the cells, as written; empty: it is not swept.
	Values []string
}

// Ref is a metric that a formula uses.
type Ref struct {
	Metric result.Metric
	// Flow is the index or the name of a flow; empty: the whole run, or the only flow.
	Flow string
	// Cell selects another cell by the values of swept variables.
	Cell []Selector
	// Statistic is the statistic over the trials: mean, median, min, max or sd.
	Statistic string
}

// Selector is a value of a swept variable.
type Selector struct{ Name, Value string }

// Statistics are the statistics over trials.
var Statistics = []string{"mean", "median", "min", "max", "sd"}

// These are limits of a formula.
const (
	maxSource = 2000
	maxDepth  = 40
)

// Expr is a formula with a value.
type Expr struct {
	source string
	root   term
	refs   []Ref
	names  []string
}

// String returns the formula as written.
func (e *Expr) String() string { return e.source }

// Unit returns the unit of the value.
func (e *Expr) Unit() Unit { return e.root.of }

// Refs returns the metrics that the formula uses.
func (e *Expr) Refs() []Ref { return e.refs }

// Names returns the variables that the formula uses.
func (e *Expr) Names() []string { return e.names }

// Compile parses a formula with a value. Its errors are of type *diagnostic.Error.
func Compile(source string, scope *Scope) (*Expr, error) {
	p := parser{scanner: scanner{text: source}, scope: scope}
	e := p.expr()
	p.end()
	if p.err != nil {
		return nil, p.err
	}
	return e, nil
}

// parser is the state of one run of Compile. After an error it continues with a placeholder.
type parser struct {
	scanner
	scope *Scope
	depth int
	err   *diagnostic.Error
	refs  []Ref    // metrics in the expression
	names []string // variables in the expression
}

// fail records the first error. The wrong part extends from a position to the current one.
func (p *parser) fail(from int, msg, want string) {
	if p.err == nil {
		p.err = &diagnostic.Error{
			File: "formula", Col: utf8.RuneCountInString(p.text[:from]) + 1,
			Text: p.text[from:min(len(p.text), max(p.at, from+1))], Msg: msg, Want: want,
			Source: p.text,
		}
	}
}

func (p *parser) end() {
	p.space()
	if from := p.at; from < len(p.text) {
		rest := p.text[from:]
		p.at = len(p.text)
		p.fail(from, diagnostic.Quote(rest)+" is unexpected here", "an operator, or the end")
	}
}

func (p *parser) expr() *Expr {
	if len(p.text) > maxSource {
		p.fail(0, "the formula is too long", strconv.Itoa(maxSource)+" bytes at most")
		return nil
	}
	p.space()
	from := p.at
	p.refs, p.names = nil, nil
	root := p.sum()
	return &Expr{strings.TrimSpace(p.text[from:p.at]), root, p.refs, p.names}
}

// nested increases the depth of nesting. It returns false if the depth exceeds the limit.
func (p *parser) nested() bool {
	if p.depth++; p.depth <= maxDepth && p.err == nil {
		return true
	}
	p.fail(p.at, "nested too deeply", strconv.Itoa(maxDepth)+" levels at most")
	return false
}

func (p *parser) sum() term { return p.chain(p.product, "+", "-", "−") }

func (p *parser) product() term { return p.chain(p.signed, "*", "/", "·", "×") }

// chain parses terms joined by operators, up to a tolerance.
func (p *parser) chain(next func() term, operators ...string) term {
	left := next()
	for p.err == nil && !p.peek("+-") {
		p.space()
		at := p.at
		op := p.first(operators)
		if op == "" {
			break
		}
		left = p.binary(op, at, left, next())
	}
	return left
}

func (p *parser) signed() term {
	defer func() { p.depth-- }()
	if !p.nested() {
		return term{}
	}
	p.space()
	at := p.at
	if p.take("-") || p.take("−") {
		return p.binary("-", at, number(0, Unknown), p.signed())
	}
	return p.power()
}

func (p *parser) power() term {
	left := p.operand()
	p.space()
	if at := p.at; p.err == nil && p.take("^") {
		return p.binary("^", at, left, p.signed())
	}
	return left
}

// binary combines two terms. For + and -, their units must fit.
func (p *parser) binary(op string, at int, left, right term) term {
	if p.err != nil {
		return term{}
	}
	l, r := left.of, right.of
	of, sign := Unknown, op
	switch op {
	case "+", "-", "−":
		if !fit(l, r) {
			p.at = at + len(op)
			p.fail(at, "one side is "+nameOf(l)+" and the other is "+nameOf(r), "the same unit")
		}
		if sign != "+" {
			sign = "-"
		}
		if of = l; l == Unknown || l == Pure {
			of = r
		}
	case "*", "·", "×":
		sign = "*"
		if counted(l) {
			of = r
		} else if counted(r) {
			of = l
		}
	case "/":
		if counted(r) {
			of = l
		} else if l == r && l != Unknown {
			of = Pure
		}
	case "^":
		if counted(l) {
			of = Pure
		}
	}
	return applied(of, operations[sign], left, right)
}

func (p *parser) operand() term {
	p.space()
	from := p.at
	if p.take("(") {
		inner := p.sum()
		if p.err == nil && !p.take(")") {
			p.fail(p.at, "a parenthesis is not closed", ")")
		}
		return inner
	}
	if text := p.number(); text != "" {
		v, unit, ok := Number(text)
		if !ok {
			p.fail(from, diagnostic.Quote(text)+" is not a number with a unit",
				"one such as 262.5ms, 3% or 1.2Mbit/s")
		}
		return number(v, unit)
	}
	name := p.name()
	if name == "" {
		end := p.at == len(p.text)
		msg := "a value is missing at the end"
		if !end {
			_, n := utf8.DecodeRuneInString(p.text[p.at:])
			p.at += n
			msg = diagnostic.Quote(p.text[from:p.at]) + " is not a value"
		}
		p.fail(from, msg, "a number, a metric, a function or a swept key")
		return term{}
	}
	return p.named(from, name)
}

// named parses the rest of an operand that begins with a name: a metric, a function or a variable.
func (p *parser) named(from int, name string) term {
	f, isFunction := functions[name]
	ref, isMetric := metricOf(name)
	unit, isVariable := p.variable(name)
	switch {
	case isFunction && p.peek("("):
		return p.call(from, name, f)
	case isMetric && (!isVariable || !p.scope.parameters):
		return p.metric(ref)
	case isVariable:
		return p.variableTerm(name, unit)
	case isFunction:
		p.fail(from, name+" has no arguments", f.usage(name))
	default:
		p.unknownName(from, name)
	}
	return term{}
}

func (p *parser) variableTerm(name string, of Unit) term {
	p.names = append(p.names, name)
	return term{of, func(env Env) (float64, error) { return env.Variable(name) }}
}

func (p *parser) variable(name string) (Unit, bool) {
	for _, v := range p.scope.Variables {
		if v.Name == name {
			return v.Unit, true
		}
	}
	return Unknown, false
}

func (p *parser) unknownName(from int, name string) {
	known := result.Names()
	for n := range functions {
		known = append(known, n)
	}
	for _, v := range p.scope.Variables {
		known = append(known, v.Name)
	}
	slices.Sort(known)
	near := diagnostic.DidYouMean(strings.ReplaceAll(name, ".", "_"), known)
	p.fail(from, diagnostic.Quote(name)+" is neither a metric, a function nor a swept key"+near, "")
}

// shortcuts are short names of metrics.
var shortcuts = map[string]result.Metric{
	"rtt": result.RTTMean, "queue": result.QueueMean, "cwnd": result.CwndMean,
	"utilization": result.Utilization,
}

// metricOf finds the metric with a name, whose last part may be a statistic.
func metricOf(name string) (Ref, bool) {
	joined := strings.ReplaceAll(name, ".", "_")
	if m, ok := inCatalog(joined); ok {
		return Ref{Metric: m, Statistic: "mean"}, true
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || !slices.Contains(Statistics, name[dot+1:]) {
		return Ref{}, false
	}
	m, ok := inCatalog(strings.ReplaceAll(name[:dot], ".", "_"))
	return Ref{Metric: m, Statistic: name[dot+1:]}, ok
}

func inCatalog(name string) (result.Metric, bool) {
	if m, ok := shortcuts[name]; ok {
		return m, true
	}
	d, ok := result.Find(name)
	return d.Name, ok
}
