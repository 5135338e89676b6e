package formula

import (
	"fmt"
	"math"
)

// Env gives a formula its values.
type Env interface {
	// Variable returns the value in the current cell.
	Variable(name string) (float64, error)
	// Metric returns a metric, in the catalog's unit.
	Metric(r Ref) (float64, error)
}

// Eval returns the value of the formula. It returns an error if the result is not finite or if env
// returns one.
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

// term is a part of an expression, with its unit.
type term struct {
	of   Unit
	eval func(env Env) (float64, error)
}

func number(v float64, of Unit) term {
	if v == 0 && of == Pure {
		of = Unknown // zero has every unit
	}
	return term{of, func(Env) (float64, error) { return v, nil }}
}

func evalAll(env Env, terms []term) ([]float64, error) {
	values := make([]float64, len(terms))
	for i, t := range terms {
		v, err := t.eval(env)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func applied(of Unit, f func(x []float64) float64, terms ...term) term {
	return term{of, func(env Env) (float64, error) {
		x, err := evalAll(env, terms)
		if err != nil {
			return 0, err
		}
		return f(x), nil
	}}
}

// operations are the binary operators.
var operations = map[string]func(x []float64) float64{
	"+": func(x []float64) float64 { return x[0] + x[1] },
	"-": func(x []float64) float64 { return x[0] - x[1] },
	"*": func(x []float64) float64 { return x[0] * x[1] },
	"/": func(x []float64) float64 { return x[0] / x[1] },
	"^": func(x []float64) float64 { return math.Pow(x[0], x[1]) },
}
