package starlark

import (
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// Program is a compiled script. It is immutable: any number of runs may share it, on any number of
// threads.
type Program struct {
	name  string
	calls [numCalls]*starlark.Function // nil: the script does not define the function
	notes []string                     // lines printed while the file was executed
}

// Params are values for a script's parameters, by name, as text.
type Params map[string]string

// call is a function that a script may define.
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

// signature is the name and the parameters of a call.
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

// options select the dialect: Starlark with while loops and top-level control statements. Recursion
// and set stay disabled, as in the language's definition.
var options = syntax.FileOptions{While: true, TopLevelControl: true, GlobalReassign: true}

// Compile compiles a script. name is its file name for error messages. params override the defaults
// of the script's parameters. Each error is an *Error; several are joined. An error about a value
// of params has the name of the parameter.
func Compile(name string, src []byte, params Params) (*Program, error) {
	if len(src) > maxSource {
		what := fmt.Sprintf("a script of %d bytes: must be at most %d", len(src), maxSource)
		return nil, &Error{File: name, What: what}
	}
	p := &Program{name: name[strings.LastIndexAny(name, `/\`)+1:]}
	given := parameters{given: params}
	globals, err := p.read(name, src, &given)
	if err != nil {
		return nil, scriptErrors(name, src, err)
	}
	if err := given.unused(name); err != nil {
		return nil, err
	}
	for i := range signatures {
		if p.calls[i], err = find(name, globals, &signatures[i]); err != nil {
			return nil, err
		}
	}
	return p, rejectMisspelled(globals)
}

// Name returns the file's name without its folder: the name of the algorithm.
func (p *Program) Name() string { return p.name }

// read executes the file's top-level statements and returns its globals.
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
		return nil, syntax.Error{Pos: pos, Msg: "load: the whole algorithm must be in one file"}
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

// find returns a function of the script, after checking its parameters.
func find(file string, globals starlark.StringDict, s *signature) (*starlark.Function, error) {
	v, ok := globals[s.name]
	if !ok {
		if s.must {
			what := fmt.Sprintf("no function %s: must define %v", s.name, s)
			return nil, &Error{File: file, What: what}
		}
		return nil, nil
	}
	f, ok := v.(*starlark.Function)
	if !ok {
		return nil, &Error{
			File: file, What: fmt.Sprintf("%s is of type %s: must be %v", s.name, v.Type(), s),
		}
	}
	n := f.NumParams()
	if n != 2 || f.NumKwonlyParams() > 0 || f.HasVarargs() || f.HasKwargs() {
		return nil, at(f.Position(), fmt.Sprintf("%s has other parameters: must be %v", s.name, s))
	}
	return f, nil
}

// rejectMisspelled rejects a function whose name begins with on_ but is not a callback, because
// nothing would call it.
func rejectMisspelled(globals starlark.StringDict) error {
	var names []string
	for i := range signatures {
		names = append(names, signatures[i].name)
	}
	for _, g := range globals.Keys() {
		f, ok := globals[g].(*starlark.Function)
		if !ok || !strings.HasPrefix(g, "on_") || slices.Contains(names, g) {
			continue
		}
		return at(f.Position(), fmt.Sprintf("%s: nothing calls it%s; must be one of %s", g,
			diagnostic.DidYouMean(g, names), strings.Join(names, ", ")))
	}
	return nil
}

// contain converts a panic of the interpreter to an error.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the interpreter failed: %v", r)
	}
}
