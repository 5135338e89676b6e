package starlark

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// Program is a script that was read and found in order. Nothing of it changes: any number of
// runs may share it, on any number of threads.
type Program struct {
	name  string
	calls [numCalls]*starlark.Function // nil: the script has none
	notes []string                     // what it printed while it was read
}

// Params are values for a script's parameters, by their names: numbers as a file has them.
type Params map[string]string

// call is one of the functions that a script may have.
type call uint8

const (
	callInit call = iota
	callAck
	callLoss
	callExit
	callRestart
	callSegment
	callSend
	callTimer
	numCalls
)

// signature is how a call is written.
type signature struct {
	name, event string
	must        bool
}

var signatures = [numCalls]signature{
	callInit:    {name: "init", event: "conn"},
	callAck:     {name: "on_ack", event: "ack", must: true},
	callLoss:    {name: "on_loss", event: "loss", must: true},
	callExit:    {name: "on_exit", event: "exit"},
	callRestart: {name: "on_restart", event: "restart"},
	callSegment: {name: "on_segment_lost", event: "segment"},
	callSend:    {name: "on_send", event: "sent"},
	callTimer:   {name: "on_timer", event: "timer"},
}

func (s *signature) String() string {
	return fmt.Sprintf("def %s(state, %s)", s.name, s.event)
}

// options are the dialect: Starlark with while and with statements outside of functions.
// Recursion and set stay off, as they are in the language's definition.
var options = syntax.FileOptions{While: true, TopLevelControl: true, GlobalReassign: true}

// Compile reads a script. name is its file's name for errors. params override the defaults of the
// script's parameters; nil overrides none. Errors are of type *Error, or several joined. An error
// about a value of params names its parameter.
func Compile(name string, src []byte, params Params) (*Program, error) {
	if len(src) > maxSource {
		what := fmt.Sprintf("a script of %d bytes: want at most %d", len(src), maxSource)
		return nil, &Error{File: name, What: what}
	}
	p := &Program{name: name[strings.LastIndexAny(name, `/\`)+1:]}
	given := parameters{given: params}
	globals, err := p.read(name, src, &given)
	if err != nil {
		return nil, mistakes(name, err)
	}
	if err := given.unused(name); err != nil {
		return nil, err
	}
	for i := range signatures {
		if p.calls[i], err = find(name, globals, &signatures[i]); err != nil {
			return nil, err
		}
	}
	return p, noStranger(globals)
}

// Name returns the file's name without its folder: what the algorithm is called.
func (p *Program) Name() string { return p.name }

// read runs the file's statements and returns what they have defined.
func (p *Program) read(
	name string, src []byte, params *parameters,
) (globals starlark.StringDict, err error) {
	defer contain(&err)
	file, err := options.Parse(name, src, 0)
	if err != nil {
		return nil, err
	}
	guardProducts(file)
	program, err := starlark.FileProgram(file, predeclared.Has)
	if err != nil {
		return nil, err
	}
	if program.NumLoads() > 0 {
		_, pos := program.Load(0)
		return nil, syntax.Error{Pos: pos, Msg: "load: want all of an algorithm in one file"}
	}
	thread := &starlark.Thread{
		Name:  name,
		Print: func(_ *starlark.Thread, text string) { p.notes = append(p.notes, note(text)) },
	}
	thread.SetLocal(localParams, params)
	var m meter
	m.attach(thread)
	m.begin(thread)
	globals, err = program.Init(thread, predeclared)
	globals.Freeze()
	return globals, err
}

// find returns a function of the script and checks how it is written.
func find(file string, globals starlark.StringDict, s *signature) (*starlark.Function, error) {
	v, ok := globals[s.name]
	if !ok {
		if s.must {
			return nil, &Error{File: file, What: fmt.Sprintf("no function %s: want %v", s.name, s)}
		}
		return nil, nil
	}
	f, ok := v.(*starlark.Function)
	if !ok {
		return nil, &Error{
			File: file, What: fmt.Sprintf("%s is of type %s: want %v", s.name, v.Type(), s),
		}
	}
	n := f.NumParams()
	if n != 2 || f.NumKwonlyParams() > 0 || f.HasVarargs() || f.HasKwargs() {
		return nil, at(f.Position(), fmt.Sprintf("%s has other parameters: want %v", s.name, s))
	}
	return f, nil
}

// noStranger refuses a function whose name resembles a callback's but is not one, because it would
// never be called.
func noStranger(globals starlark.StringDict) error {
	var names []string
	for i := range signatures {
		names = append(names, signatures[i].name)
	}
	for _, g := range globals.Keys() {
		f, ok := globals[g].(*starlark.Function)
		if !ok || !strings.HasPrefix(g, "on_") || slices.Contains(names, g) {
			continue
		}
		return at(f.Position(), fmt.Sprintf("%s: nothing calls it%s; want one of %s", g,
			diagnostic.DidYouMean(g, names), strings.Join(names, ", ")))
	}
	return nil
}

// contain turns a panic of the interpreter into an error.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the interpreter gave up: %v", r)
	}
}
