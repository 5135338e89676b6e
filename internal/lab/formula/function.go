package formula

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

type function struct {
	// params are the names and units of the arguments. Arguments with a default may be omitted.
	params []param
	of     Unit
	// same means that all arguments must have one unit, which is also the unit of the value. more
	// means that the last argument may be repeated.
	same, more bool
	// about describes the function; source cites its origin.
	about, source string
	value         func(x []float64) float64
}

type param struct {
	name  string
	unit  Unit
	value float64 // default value, or required
}

var required = math.NaN() // the value of a param without a default

func (f *function) usage(name string) string {
	words := make([]string, len(f.params))
	for i, p := range f.params {
		if words[i] = p.name; !math.IsNaN(p.value) {
			words[i] = "[" + p.name + "]"
		}
	}
	if f.more {
		words = append(words, "…")
	}
	return name + "(" + strings.Join(words, ", ") + ")"
}

func pure(about string, f func(float64) float64) function {
	return function{
		params: []param{{"x", Pure, required}}, about: about,
		value: func(x []float64) float64 { return f(x[0]) },
	}
}

// functions are all functions: mathematics, to which init adds the functions of theory.txt.
var functions = map[string]function{
	"sqrt": {
		params: []param{{"x", Unknown, required}}, of: Unknown, about: "the square root",
		value: func(x []float64) float64 { return math.Sqrt(x[0]) },
	},
	"cbrt": {
		params: []param{{"x", Unknown, required}}, of: Unknown, about: "the cube root",
		value: func(x []float64) float64 { return math.Cbrt(x[0]) },
	},
	"log2":  pure("the logarithm to base 2", math.Log2),
	"log10": pure("the logarithm to base 10", math.Log10),
	"ln":    pure("the natural logarithm", math.Log),
	"exp":   pure("e to the power of x", math.Exp),
	"floor": pure("rounded down", math.Floor),
	"ceil":  pure("rounded up", math.Ceil),
	"round": pure("rounded to the nearest", math.Round),
	"abs": {
		params: []param{{"x", Unknown, required}}, same: true, about: "the absolute value",
		value: func(x []float64) float64 { return math.Abs(x[0]) },
	},
	"min": {
		params: []param{{"x", Unknown, required}}, same: true, more: true, about: "the minimum",
		value: slices.Min[[]float64],
	},
	"max": {
		params: []param{{"x", Unknown, required}}, same: true, more: true, about: "the maximum",
		value: slices.Max[[]float64],
	},
}

const maxArguments = 20

func (p *parser) call(from int, name string, f function) term {
	p.take("(")
	var args []term
	for p.err == nil && !p.peek(")") {
		if len(args) > 0 && !p.take(",") {
			p.fail(p.at, "a parenthesis is not closed", f.usage(name))
			break
		}
		p.space()
		at := p.at
		if len(args) == maxArguments || len(args) == len(f.params) && !f.more {
			p.fail(at, "too many arguments", f.usage(name))
			break
		}
		arg := p.sum()
		p.argument(at, &f, len(args), arg.of)
		args = append(args, arg)
	}
	if p.err == nil && !p.take(")") {
		p.fail(p.at, "a parenthesis is not closed", f.usage(name))
	}
	for p.err == nil && len(args) < len(f.params) {
		next := &f.params[len(args)]
		if math.IsNaN(next.value) {
			p.fail(from, name+" has "+strconv.Itoa(len(args))+" arguments", f.usage(name))
			break
		}
		args = append(args, number(next.value, next.unit))
	}
	return applied(f.of, f.value, args...)
}

// argument checks the unit of argument i. If all arguments of a function have the same unit, the
// first argument with a unit determines it.
func (p *parser) argument(at int, f *function, i int, unit Unit) {
	if p.err != nil {
		return
	}
	if f.same {
		if i == 0 || f.of == Unknown {
			f.of = unit
		}
		if !fit(f.of, unit) {
			p.fail(at, "one argument is "+nameOf(unit)+" and another is "+nameOf(f.of),
				"the same unit")
		}
		return
	}
	if want := f.params[min(i, len(f.params)-1)]; !fit(want.unit, unit) {
		p.fail(at, want.name+" is "+nameOf(unit), nameOf(want.unit))
	}
}
