package interchange

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// thing is an unknown value in a script, such as a Python module. A thing with a name is a node.
// Its attributes, elements and results are also things.
type thing struct {
	script *script
	name   string
	self   bool // it is an object of the class that is being read
	fields starlark.StringDict
}

var (
	_ starlark.Callable    = (*thing)(nil)
	_ starlark.HasSetField = (*thing)(nil)
	_ starlark.HasSetKey   = (*thing)(nil)
	_ starlark.HasBinary   = (*thing)(nil)
	_ starlark.HasUnary    = (*thing)(nil)
	_ starlark.HasBinary   = same{}
	_ starlark.Iterable    = (*thing)(nil)
)

// unknownText stands for an unknown value in texts.
const unknownText = "\x00"

// The methods of starlark.Value.
func (t *thing) String() string        { return cmp.Or(t.name, unknownText) }
func (t *thing) Type() string          { return "value that is not known" }
func (t *thing) Freeze()               {}
func (t *thing) Truth() starlark.Bool  { return true }
func (t *thing) Name() string          { return t.name }
func (t *thing) AttrNames() []string   { return nil }
func (t *thing) Hash() (uint32, error) { return starlark.String(t.name).Hash() }

// Iterate yields no elements: their number is unknown.
func (t *thing) Iterate() starlark.Iterator { return starlark.Tuple{}.Iterate() }

// Get returns an element: net['h1'] is the node h1.
func (t *thing) Get(key starlark.Value) (starlark.Value, bool, error) {
	name, _ := starlark.AsString(key)
	if _, ok := t.script.index[name]; !ok {
		name = ""
	}
	return &thing{script: t.script, name: name}, true, nil
}

// SetKey ignores an element.
func (t *thing) SetKey(_, _ starlark.Value) error { return nil }

// SetField keeps an attribute.
func (t *thing) SetField(name string, v starlark.Value) error {
	if t.fields == nil {
		t.fields = starlark.StringDict{}
	}
	t.fields[name] = v
	return nil
}

// Binary returns the result of an operator. The result is unknown, except that of a text + a node's
// name.
func (t *thing) Binary(
	op syntax.Token, y starlark.Value, side starlark.Side,
) (starlark.Value, error) {
	if text, ok := starlark.AsString(y); ok && side == starlark.Right && op == syntax.PLUS {
		return starlark.String(text + t.String()), nil
	}
	return &thing{script: t.script}, nil
}

// Unary returns an unknown value.
func (t *thing) Unary(syntax.Token) (starlark.Value, error) { return &thing{script: t.script}, nil }

// isUnknown reports whether a value is unknown or contains an unknown value.
func isUnknown(v starlark.Value) bool {
	switch v := v.(type) {
	case *thing:
		return true
	case starlark.String:
		return strings.Contains(string(v), unknownText)
	case starlark.Tuple:
		return slices.ContainsFunc(v, isUnknown)
	}
	return false
}

// operators lists the operators that Starlark rejects if the right operand is a thing.
var operators = []syntax.Token{syntax.PERCENT, syntax.LT, syntax.LE, syntax.GT, syntax.GE}

// callOperators replaces such an operator, as in x % y, by a call that returns its result.
func callOperators(n syntax.Node) bool {
	if e, ok := n.(*syntax.BinaryExpr); ok && slices.Contains(operators, e.Op) {
		start, end := e.Span()
		name := func(text string) *syntax.Ident { return &syntax.Ident{NamePos: start, Name: text} }
		e.X = &syntax.CallExpr{
			Fn: name(e.Op.String()), Lparen: e.OpPos, Args: []syntax.Expr{e.X, e.Y}, Rparen: end,
		}
		e.Op, e.Y = syntax.PIPE, name("=")
	}
	return true
}

// same is a value for which every operator returns the other operand.
type same struct{ starlark.NoneType }

func (same) Binary(_ syntax.Token, x starlark.Value, _ starlark.Side) (starlark.Value, error) {
	return x, nil
}

// functions returns Starlark's functions and those of callOperators. If Starlark cannot compute a
// result because a value is unknown, the result is unknown.
func (s *script) functions() starlark.StringDict {
	env := starlark.StringDict{"=": same{}}
	add := func(name string, f func(
		*starlark.Thread, starlark.Tuple, []starlark.Tuple,
	) (starlark.Value, error),
	) {
		env[name] = starlark.NewBuiltin(name, func(
			t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, named []starlark.Tuple,
		) (starlark.Value, error) {
			v, err := f(t, args, named)
			if err == nil || !isUnknown(args) {
				return v, err
			}
			if name == "range" {
				s.note(s.caller(), "the loop is left out: how often it runs is not known; write "+
					"the number")
			}
			return &thing{script: s}, nil
		})
	}
	for name, v := range starlark.Universe {
		if f, ok := v.(*starlark.Builtin); ok {
			add(name, f.CallInternal)
		}
	}
	for _, op := range operators {
		add(op.String(), func(
			_ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple,
		) (starlark.Value, error) {
			if op == syntax.PERCENT {
				return starlark.Binary(op, args[0], args[1])
			}
			is, err := starlark.Compare(op, args[0], args[1])
			return starlark.Bool(is), err
		})
	}
	return env
}

// CallInternal returns an unknown value.
func (t *thing) CallInternal(
	*starlark.Thread, starlark.Tuple, []starlark.Tuple,
) (starlark.Value, error) {
	return &thing{script: t.script}, nil
}

// Attr returns an attribute that was set, a method of the script, or a function that records a
// mininet call.
func (t *thing) Attr(name string) (starlark.Value, error) {
	if v, ok := t.fields[name]; ok {
		return v, nil
	}
	s := t.script
	builtin := func(
		_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, options []starlark.Tuple,
	) (starlark.Value, error) {
		if s.calls++; s.calls > maxCalls {
			return nil, errors.New("too many nodes and links")
		}
		switch name {
		case "addLink":
			s.addLink(args, options)
		case "addHost", "addNode", "addSwitch", "addController":
			return s.add(name, args, options), nil
		case "addNAT":
			s.once(s.caller(), "NAT is left out: publish and expose forward ports to this machine")
		default:
			s.once(s.caller(), "commands and settings of running hosts ("+strings.TrimSpace(name)+
				") are not carried over; `node ctl NODE` runs commands")
		}
		return &thing{script: s}, nil
	}
	switch name {
	case "addLink", "addHost", "addNode", "addSwitch", "addController", "addNAT", "cmd",
		"cmdPrint", "popen", "setIP", "setDefaultRoute":
		return starlark.NewBuiltin(name, builtin), nil
	}
	if f, ok := s.globals[name].(*starlark.Function); ok && t.self && s.methods[name] {
		return starlark.NewBuiltin(name, func(
			thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, o []starlark.Tuple,
		) (starlark.Value, error) {
			return starlark.Call(thread, f, append(starlark.Tuple{t}, args...), o)
		}), nil
	}
	return &thing{script: s}, nil
}
