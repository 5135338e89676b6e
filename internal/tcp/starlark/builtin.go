package starlark

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	starlarkmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// predeclared are the names that scripts have in addition to Starlark's own.
var predeclared = starlark.StringDict{
	"DETECTED":      kinds[congestion.Detected],
	"TIMEOUT":       kinds[congestion.Timeout],
	"TIMEOUT_AGAIN": kinds[congestion.TimeoutAgain],
	"ECHO":          kinds[congestion.Echo],
	"math":          mathModule,
	"max":           starlark.NewBuiltin("max", extreme),
	"min":           starlark.NewBuiltin("min", extreme),
	"param":         starlark.NewBuiltin("param", param),
	productName:     starlark.NewBuiltin(productName, product),
	"random":        starlark.NewBuiltin("random", random),
	"range":         starlark.NewBuiltin("range", boundedRange),
	"record":        starlark.NewBuiltin("record", record),
	"set_timer":     starlark.NewBuiltin("set_timer", setTimer),
}

// random returns a number in [0, 1) from the connection's random stream.
func random(
	t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 0); err != nil {
		return nil, err
	}
	c, err := connection(t, b)
	if err != nil {
		return nil, err
	}
	return starlark.Float(c.rand.Float64()), nil
}

// connection returns the controller of the connection for which a builtin is called.
func connection(t *starlark.Thread, b *starlark.Builtin) (*controller, error) {
	if c, ok := t.Local(local).(*controller); ok {
		return c, nil
	}
	return nil, fmt.Errorf("%s belongs to a connection: call it in a function such as on_ack, not "+
		"while the file is read", b.Name())
}

// record writes a number of the script to the experiment's results: record("alpha", state.alpha).
func record(
	t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	c, err := connection(t, b)
	if err != nil {
		return nil, err
	}
	if len(args) != 2 || len(kwargs) > 0 {
		return nil, fmt.Errorf("record: got %d arguments: must be a column's name and a number, "+
			"such as record(\"alpha\", state.alpha)", len(args)+len(kwargs))
	}
	name, ok := args[0].(starlark.String)
	if !ok {
		return nil, fmt.Errorf("record: the name is of type %s: must be a string such as \"alpha\"",
			args[0].Type())
	}
	value, err := number(fmt.Sprintf("record(%q)", string(name)), args[1])
	if err != nil {
		return nil, err
	}
	return starlark.None, c.run.record(string(name), value)
}

// setTimer schedules one call of on_timer after a number of seconds. None stops the timer.
func setTimer(
	t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	c, err := connection(t, b)
	if err != nil {
		return nil, err
	}
	if c.run.program.calls[callTimer] == nil {
		return nil, errors.New("set_timer: the script has no function for it: define " +
			signatures[callTimer].String())
	}
	if len(args) != 1 || len(kwargs) > 0 {
		return nil, fmt.Errorf("set_timer: got %d positional and %d named arguments: must be one "+
			"positional: seconds, or None to stop the timer", len(args), len(kwargs))
	}
	if args[0] == starlark.None {
		c.timer.at = clock.Never
		return starlark.None, nil
	}
	after, err := number("set_timer", args[0])
	if err != nil {
		return nil, err
	}
	if !(after >= minTimer.Seconds() && after <= maxTimer.Seconds()) {
		return nil, fmt.Errorf("set_timer(%v): must be %v to %v seconds", args[0],
			minTimer.Seconds(), maxTimer.Seconds())
	}
	c.timer.set(c.now, time.Duration(math.Round(after*1e9)))
	return starlark.None, nil
}

// extreme implements Starlark's min and max. It is fast for two integers, because algorithms call
// these functions most often.
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

// boundedRange is Starlark's range with a limited length, so that list, sorted and others cannot
// allocate too much.
func boundedRange(
	t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	v, err := starlark.Call(t, starlark.Universe["range"], args, kwargs)
	if err != nil {
		return nil, err
	}
	if n := starlark.Len(v); n > maxValues {
		return nil, fmt.Errorf("range of %d values: must be at most %d", n, maxValues)
	}
	return v, nil
}

// mathModule is Starlark's math module. Portable functions of arith.go replace the functions whose
// results depend on the platform.
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

// function makes a builtin from a function of one number.
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
			return 0, 0, fmt.Errorf("%s: got %s, which is not a number", b.Name(), v[i].Type())
		}
		*p = f
	}
	return x, y, nil
}

// result returns an error for NaN. Otherwise NaN would only cause an error much later.
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
