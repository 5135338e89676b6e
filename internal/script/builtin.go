package script

import (
	"errors"
	"fmt"
	"math"
	"strings"

	starlarkmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// predeclared are the names that a script has beside Starlark's own.
var predeclared = starlark.StringDict{
	"DETECTED":      kinds[congestion.Detected],
	"TIMEOUT":       kinds[congestion.Timeout],
	"TIMEOUT_AGAIN": kinds[congestion.TimeoutAgain],
	"ECHO":          kinds[congestion.Echo],
	"math":          mathModule,
	"max":           starlark.NewBuiltin("max", extreme),
	"min":           starlark.NewBuiltin("min", extreme),
	productName:     starlark.NewBuiltin(productName, product),
	"random":        starlark.NewBuiltin("random", random),
	"range":         starlark.NewBuiltin("range", boundedRange),
}

// random returns a number from 0 up to but not including 1, from the connection's own stream.
func random(
	t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	c, ok := t.Local(local).(*controller)
	if !ok {
		return nil, errors.New("random belongs to a connection: want it called in a function")
	}
	return starlark.Float(c.rand.Float64()), nil
}

// extreme is Starlark's min or max, with a short way for two integers: these functions are
// most of what algorithms call.
func extreme(
	t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	if len(args) == 2 && len(kwargs) == 0 {
		x, isInt := args[0].(starlark.Int)
		y, both := args[1].(starlark.Int)
		if isInt && both {
			if c, err := x.Cmp(y, 1); err == nil && c != 0 && (c < 0) != (b.Name() == "min") {
				return y, nil
			}
			return x, nil
		}
	}
	return starlark.Call(t, starlark.Universe[b.Name()], args, kwargs)
}

// boundedRange is Starlark's range with an end to what list, sorted and others can make of it.
func boundedRange(
	t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	v, err := starlark.Call(t, starlark.Universe["range"], args, kwargs)
	if err != nil {
		return nil, err
	}
	if n := starlark.Len(v); n > maxValues {
		return nil, fmt.Errorf("range of %d values: want at most %d", n, maxValues)
	}
	return v, nil
}

// mathModule has of Starlark's module what IEEE 754 gives one result for, and of the rest what
// arith.go has.
var mathModule = func() *starlarkstruct.Module {
	m := &starlarkstruct.Module{Name: "math", Members: starlark.StringDict{
		"cbrt": function("cbrt", cbrt),
		"exp":  function("exp", exp),
		"log":  function("log", log),
		"pow":  starlark.NewBuiltin("pow", power),
	}}
	for _, same := range []string{"ceil", "e", "fabs", "floor", "mod", "pi", "round", "sqrt"} {
		m.Members[same] = starlarkmath.Module.Members[same]
	}
	m.Freeze()
	return m
}()

// function makes a builtin of a function of one number.
func function(name string, f func(float64) float64) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(
		_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
	) (starlark.Value, error) {
		x, _, err := numbers(b, args, kwargs, 1)
		if err != nil {
			return nil, err
		}
		return result(b, args, f(x))
	})
}

func power(
	_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	x, y, err := numbers(b, args, kwargs, 2)
	if err != nil {
		return nil, err
	}
	return result(b, args, pow(x, y))
}

// numbers unpacks n numbers, one or two.
func numbers(
	b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple, n int,
) (x, y float64, err error) {
	v := [2]starlark.Value{starlark.None, starlark.None}
	err = starlark.UnpackPositionalArgs(b.Name(), args, kwargs, n, &v[0], &v[1])
	if err != nil {
		return 0, 0, err
	}
	if len(args) > n {
		return 0, 0, fmt.Errorf("%s: got %d arguments, want %d", b.Name(), len(args), n)
	}
	for i, p := range []*float64{&x, &y}[:n] {
		f, ok := starlark.AsFloat(v[i])
		if !ok {
			return 0, 0, fmt.Errorf("%s: got %s, want a number", b.Name(), v[i].Type())
		}
		*p = f
	}
	return x, y, nil
}

// result refuses what is no number, where it comes from: it would be noticed much later.
func result(b *starlark.Builtin, args starlark.Tuple, f float64) (starlark.Value, error) {
	if math.IsNaN(f) {
		var of []string
		for _, v := range args {
			of = append(of, v.String())
		}
		return nil, fmt.Errorf("math.%s(%s) is not a number", b.Name(), strings.Join(of, ", "))
	}
	return starlark.Float(f), nil
}
