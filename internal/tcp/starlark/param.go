package starlark

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// localParams is the key of the parameters of the thread that compiles a file.
const localParams = "params"

// parameters are the parameters of a file, with their given values.
type parameters struct {
	given Params
	names []string // declared in the file
}

// param implements param(name, default): it returns the given value of a parameter, or its default.
func param(
	t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	p, ok := t.Local(localParams).(*parameters)
	if !ok || t.CallStackDepth() > 2 {
		return nil, errors.New("param: call it outside of functions, such as " +
			`BETA = param("beta", 0.5) at the top of the file`)
	}
	var name string
	var value starlark.Value
	err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "default", &value)
	if err != nil {
		return nil, err
	}
	if what := badName(name); what != "" {
		return nil, errors.New("param: " + what)
	}
	if _, err := number("the default of param "+strconv.Quote(name), value); err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(p.names, name):
		return nil, fmt.Errorf("param(%q) already exists: names must differ", name)
	case len(p.names) == maxParams:
		return nil, fmt.Errorf("param(%q): a script has at most %d parameters", name, maxParams)
	}
	p.names = append(p.names, name)
	text, ok := p.given[name]
	if !ok {
		return value, nil
	}
	v, err := readParam(text)
	if err != nil {
		return nil, &Error{File: t.Name, Param: name, What: err.Error()}
	}
	if n, whole := v.(starlark.Int); whole {
		if _, fraction := value.(starlark.Float); fraction {
			return n.Float(), nil
		}
	}
	return v, nil
}

// readParam parses the value of a parameter.
func readParam(text string) (starlark.Value, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return starlark.MakeInt64(n), nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return nil, fmt.Errorf("%q is not a parameter's value: must be a finite number such as 0.5",
			text)
	}
	return starlark.Float(x), nil
}

// unused rejects a given value for a parameter that the file does not declare.
func (p *parameters) unused(file string) error {
	for name := range p.given {
		if slices.Contains(p.names, name) {
			continue
		}
		what := fmt.Sprintf("the script has no param(%q, …)%s", name,
			diagnostic.DidYouMean(name, p.names))
		if len(p.names) > 0 {
			what += "; it has " + strings.Join(p.names, ", ")
		}
		return &Error{File: file, Param: name, What: what}
	}
	return nil
}

// badName describes the error in the name of a parameter or a column. It returns "" for a valid
// name.
func badName(name string) string {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') || i >= maxName {
			name = ""
			break
		}
	}
	if name == "" {
		return fmt.Sprintf("the name must be 1 to %d letters, digits or _, and begin with a letter",
			maxName)
	}
	return ""
}
