package formula

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
)

//go:embed theory.txt
var theory string

// computed has the functions of theory.txt that formulas cannot express.
var computed = map[string]func(x []float64) float64{
	"codel_drop":  codelDrop,
	"codel_drops": codelDrops,
	"overtaking":  func(x []float64) float64 { return math.Erfc(x[0]/(2*x[1])) / 2 },
}

func init() { // a formula can call the functions that are defined before it
	for block := range strings.SplitSeq(strings.TrimSpace(theory), "\n\n") {
		lines := strings.Split(block, "\n")
		for strings.HasPrefix(lines[0], "#") && len(lines) > 1 {
			lines = lines[1:]
		}
		if len(lines) > 1 {
			define(lines[0], lines[1], lines[2], lines[3])
		}
	}
}

// define adds a function of theory.txt. The parameters are NAME [UNIT] [= DEFAULT].
func define(call, text, about, source string) {
	name, list, _ := strings.Cut(call, "(")
	list, unit, _ := strings.Cut(list, ")")
	f := function{
		of: Unit(strings.TrimSpace(unit)), about: about, source: source, value: computed[name],
	}
	for word := range strings.SplitSeq(list, ", ") {
		word, value, optional := strings.Cut(word, " = ")
		p := param{value: required}
		p.name, unit, _ = strings.Cut(word, " ")
		p.unit = Unit(unit)
		if optional {
			p.value, _ = strconv.ParseFloat(value, 64)
		}
		f.params = append(f.params, p)
	}
	if f.value == nil {
		f.value = f.body(text)
	}
	functions[name] = f
}

// body compiles a formula that computes the function from its parameters.
func (f *function) body(text string) func(x []float64) float64 {
	scope := &Scope{parameters: true}
	for _, p := range f.params {
		scope.Variables = append(scope.Variables, Variable{Name: p.name, Unit: p.unit})
	}
	e, err := Compile(text, scope)
	if err != nil {
		panic("BUG: formula: theory.txt: " + err.Error())
	}
	return func(x []float64) float64 {
		values := arguments{}
		for i, p := range f.params {
			values[p.name] = x[i]
		}
		v, err := e.root.eval(values)
		if err != nil {
			return math.NaN()
		}
		return v
	}
}

// arguments are the values of a function's parameters.
type arguments map[string]float64

func (a arguments) Variable(name string) (float64, error) { return a[name], nil }

func (arguments) Metric(r Ref) (float64, error) {
	return 0, fmt.Errorf("a function has no metric %s", r.Metric)
}

// codelDrop adds the intervals between drops. For many drops it uses an integral instead of the
// sum.
func codelDrop(x []float64) float64 {
	const exact = 10_000
	sum, n := 0.0, math.Floor(x[0])
	for i := 1.0; i < min(n, exact); i++ {
		sum += 1 / math.Sqrt(i)
	}
	if n > exact {
		sum += 2 * (math.Sqrt(n) - math.Sqrt(exact))
	}
	return sum * x[1]
}

// codelDrops counts the drops from the first one up to a time after it. Drop n+1 comes 1/√n of an
// interval after drop n.
func codelDrops(x []float64) float64 {
	const most = 1e7
	n := 1.0
	for at := 0.0; n < most; n++ {
		if at += x[1] / math.Sqrt(n); !(at <= x[0]) {
			break
		}
	}
	return n
}
