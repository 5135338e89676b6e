package interchange

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/tidepool-net/tidepool/internal/topology"
)

// A mininet script is Python, and Starlark is a dialect of Python. So the parts of the script that
// Starlark can parse are evaluated: without imports, files or programs, and with a limited number
// of steps. Calls of addHost, addSwitch and addLink are recorded for any object. Every name that
// the script does not define has an unknown value.

const (
	maxSteps = 300_000 // also limits the depth of recursion
	maxCalls = 10 * topology.MaxNodes
	maxLines = 100 // number of lines that Starlark cannot parse and that are omitted
	// mininetBits is the prefix length of mininet's addresses, and mininetBase the address before
	// the first one.
	mininetBits = 8
	mininetBase = 10 << 24
)

type script struct {
	*importer
	thread    *starlark.Thread
	globals   starlark.StringDict
	methods   map[string]bool // the functions with a self parameter
	addrs     map[string]netip.Prefix
	addressed map[string]bool // nodes whose own address is already assigned to an end
	hosts     int
	calls     int
}

// dialect is the Starlark dialect that is closest to Python.
var dialect = &syntax.FileOptions{
	Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true,
}

var (
	classLine = regexp.MustCompile(`^class\s+(\w+)`)
	function  = regexp.MustCompile(`^(\s*)def\s+(\w+)`)
	// Statements that Starlark lacks.
	blockLine = regexp.MustCompile(`^(\s*)(try|finally|else|with\b.*)\s*:\s*(#.*)?$`)
	exceptRE  = regexp.MustCompile(`^(\s*)except\b.*:\s*(#.*)?$`)
	otherLine = regexp.MustCompile(`^(\s*)(import|from|global|nonlocal|del|assert|raise)\b.*$`)
	decorator = regexp.MustCompile(`^(\s*)@.*$`)
	formatted = regexp.MustCompile(`\bf("[^"\\]*"|'[^'\\]*')`)
	replaced  = regexp.MustCompile(`\{([^{}:!]*)\}`)
	doesLinks = regexp.MustCompile(`\.add(Link|Host)\s*\(`)
)

// script reads a mininet script.
func (m *importer) script(text []byte) error {
	lines := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	s := &script{
		importer: m, methods: map[string]bool{}, addrs: map[string]netip.Prefix{},
		addressed: map[string]bool{},
	}
	class, unit := s.choose(lines)
	s.thread = &starlark.Thread{Name: m.file, Print: func(*starlark.Thread, string) {}}
	s.thread.SetMaxExecutionSteps(maxSteps)
	program, names, err := s.compile(lines)
	if err != nil {
		return err
	}
	env := s.functions()
	env["__name__"] = starlark.String("")
	for _, name := range names {
		if !env.Has(name) {
			env[name] = &thing{script: s}
		}
	}
	s.globals, err = program.Init(s.thread, env)
	s.failed(err)
	if len(m.plan.Links) > 0 {
		return nil
	}
	self := &thing{script: s, self: true}
	positional, named := s.construction(class, lines, env)
	for _, name := range unit {
		if f, ok := s.globals[name].(*starlark.Function); ok {
			s.call(f, self, positional, named)
		}
	}
	return nil
}

// construction evaluates the arguments of a constructor call in the script: NAME(n=4).
func (s *script) construction(
	class string, lines []string, env starlark.StringDict,
) (starlark.Tuple, *starlark.Dict) {
	made := regexp.MustCompile(`\b` + class + `\s*\(([^()]+)\)`).FindStringSubmatch(
		strings.Join(lines, "\n"))
	if class == "" || made == nil {
		return nil, nil
	}
	maps.Copy(env, s.globals)
	v, err := starlark.EvalOptions(dialect, s.thread, s.file,
		"(lambda *args, **options: (args, options))("+made[1]+")", env)
	if err != nil {
		return nil, nil // the arguments use names that only the caller defines
	}
	pair := v.(starlark.Tuple)
	return pair[0].(starlark.Tuple), pair[1].(*starlark.Dict)
}

// block is a statement at the top level of a script, with its body.
type block struct {
	lines []string // lines of the script; they are changed in place
	first int      // number of its first line
	class string   // name of the class; empty if the block is not a class
}

func (b *block) links() bool {
	return slices.ContainsFunc(b.lines, doesLinks.MatchString)
}

func blocks(lines []string) (list []block) {
	quoted := false
	for i, line := range lines {
		if !quoted && line != "" && !strings.ContainsRune(" \t#)]}", rune(line[0])) || i == 0 {
			b := block{first: i + 1}
			if class := classLine.FindStringSubmatch(line); class != nil {
				b.class = class[1]
			}
			list = append(list, b)
		}
		last := &list[len(list)-1]
		last.lines = lines[last.first-1 : i+1]
		if (strings.Count(line, `"""`)+strings.Count(line, "'''"))%2 == 1 {
			quoted = !quoted
		}
	}
	return list
}

// choose selects the code that builds one topology: the first class that adds links, whose methods
// become functions, or else the first function that adds links. It returns the names of the class
// and of the functions to call.
func (s *script) choose(lines []string) (class string, unit []string) {
	all := blocks(lines)
	for i := range all {
		b := &all[i]
		switch {
		case b.class == "":
		case class == "" && b.links():
			class, unit = b.class, []string{"__init__", "build"}
			s.unwrap(b)
			continue
		default:
			if b.links() {
				s.note(place{line: b.first}, "class %s is not read: class %s is the topology; put "+
					"it into a file of its own", b.class, class)
			}
			clear(b.lines)
		}
	}
	for i := range all {
		if f := function.FindStringSubmatch(all[i].lines[0]); f != nil && unit == nil &&
			all[i].links() {
			unit = []string{f[2]}
		}
	}
	return class, unit
}

// unwrap turns the methods of a class into functions, and blanks the rest of the class.
func (s *script) unwrap(b *block) {
	indent, inside := -1, false
	for i, line := range b.lines {
		at := len(line) - len(strings.TrimLeft(line, " \t"))
		f := function.FindStringSubmatch(line)
		switch {
		case f != nil && (indent < 0 || at == indent):
			indent, inside = at, true
			s.methods[f[2]] = true
		case strings.TrimSpace(line) != "" && at <= indent &&
			!strings.ContainsRune("#)]}", rune(line[at])):
			inside = false
		}
		if inside {
			b.lines[i] = line[min(at, indent):]
		} else {
			b.lines[i] = ""
		}
	}
}

// readable replaces Python statements by Starlark statements, line by line.
func readable(line string) string {
	line = otherLine.ReplaceAllString(line, "${1}pass")
	line = decorator.ReplaceAllString(line, "")
	line = exceptRE.ReplaceAllString(line, "${1}if False:")
	if b := blockLine.FindStringSubmatch(line); b != nil && b[2] != "else" {
		line = b[1] + "if True:"
	}
	return formatted.ReplaceAllStringFunc(line, func(text string) string {
		text = text[1:]
		var args []string
		for _, part := range replaced.FindAllStringSubmatch(text, -1) {
			args = append(args, part[1])
		}
		return replaced.ReplaceAllString(text, "{}") + ".format(" + strings.Join(args, ", ") + ")"
	})
}

// compile compiles the lines and lists the names that they do not define. It omits lines that
// Starlark cannot parse.
func (s *script) compile(lines []string) (*starlark.Program, []string, error) {
	for i, line := range lines {
		lines[i] = readable(line)
	}
	for range maxLines {
		var names []string
		file, err := dialect.Parse(s.file, strings.Join(lines, "\n"), 0)
		if err == nil {
			syntax.Walk(file, callOperators)
			var program *starlark.Program
			program, err = starlark.FileProgram(file, func(name string) bool {
				if _, ok := starlark.Universe[name].(*starlark.Builtin); !ok &&
					starlark.Universe.Has(name) {
					return false
				}
				names = append(names, name)
				return true
			})
			if err == nil {
				return program, names, nil
			}
		}
		at, msg := problem(err)
		if at.line < 1 || at.line > len(lines) || strings.TrimSpace(lines[at.line-1]) == "" {
			return nil, nil, s.fail(at, "syntax error: %s", msg)
		}
		bad := lines[at.line-1]
		s.note(place{line: at.line}, "the line is not read: %s; if it adds nodes or links, write "+
			"it as a plain call", msg)
		lines[at.line-1] = bad[:len(bad)-len(strings.TrimLeft(bad, " \t"))] + "pass"
		if strings.TrimSpace(bad) == "pass" {
			lines[at.line-1] = ""
		}
	}
	s.notes = nil
	return nil, nil, s.fail(place{}, "not a mininet script: more than %d lines cannot be read; "+
		"write the links as plain addLink calls", maxLines)
}

func problem(err error) (place, string) {
	if e, ok := errors.AsType[syntax.Error](err); ok {
		return place{int(e.Pos.Line), int(e.Pos.Col)}, e.Msg
	}
	if list, ok := errors.AsType[resolve.ErrorList](err); ok && len(list) > 0 {
		return place{int(list[0].Pos.Line), int(list[0].Pos.Col)}, list[0].Msg
	}
	if e, ok := errors.AsType[*starlark.EvalError](err); ok {
		for i := range e.CallStack {
			if pos := e.CallStack.At(i).Pos; pos.Line > 0 {
				return place{int(pos.Line), int(pos.Col)}, e.Msg
			}
		}
		return place{}, e.Msg
	}
	return place{}, err.Error()
}

func (s *script) failed(err error) {
	if err != nil {
		at, msg := problem(err)
		s.note(place{line: at.line}, "the script is not read from here on: %s; give values that "+
			"are computed elsewhere as numbers and texts", msg)
	}
}

// call calls a function with those of the given arguments that the function accepts. Parameters
// without a value are unknown.
func (s *script) call(
	f *starlark.Function, self *thing, positional starlark.Tuple, named *starlark.Dict,
) {
	var args starlark.Tuple
	for i := range f.NumParams() - btoi(f.HasVarargs()) - btoi(f.HasKwargs()) {
		name, pos := f.Param(i)
		var value starlark.Value
		if named != nil {
			if given, found, _ := named.Get(starlark.String(name)); found {
				value = given
			}
		}
		switch {
		case name == "self":
			value = self
		case value != nil:
		case i-1 < len(positional) && s.methods[f.Name()] && i > 0:
			value = positional[i-1]
		case f.ParamDefault(i) != nil:
			value = f.ParamDefault(i)
		default:
			s.note(place{line: int(pos.Line)}, "%s of %s has no default, so its value is not "+
				"known; write %s=4, for example", name, f.Name(), name)
			value = &thing{script: s}
		}
		args = append(args, value)
	}
	_, err := starlark.Call(s.thread, f, args, nil)
	s.failed(err)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *script) caller() place {
	if s.thread.CallStackDepth() < 2 {
		return place{}
	}
	pos := s.thread.CallFrame(1).Pos
	return place{line: int(pos.Line)}
}

// once adds a note, unless the script has caused the same note before.
func (s *script) once(at place, text string) {
	if !s.told[text] {
		s.told[text] = true
		s.note(at, "%s", text)
	}
}

func (s *script) add(what string, args starlark.Tuple, options []starlark.Tuple) starlark.Value {
	at := s.caller()
	name := "c0"
	if len(args) > 0 {
		name = asText(args[0])
	}
	for _, o := range options {
		if asText(o[0]) == "name" {
			name = asText(o[1])
		}
	}
	node := &thing{script: s, name: name}
	switch {
	case what == "addController":
		s.once(at, "controllers are left out: routers find their routes by RIP")
		return node
	case name == "":
		s.note(at, "%s without a name that is known: left out; write the name as text", what)
		return node
	}
	if what == "addSwitch" {
		s.switchNode(at, name)
		return node
	}
	if _, again := s.index[name]; !again {
		s.hosts++
	}
	s.node(at, name, topology.Unsaid)
	ip, lost := "", []string{}
	for _, o := range options {
		switch key := asText(o[0]); key {
		case "ip":
			ip = asText(o[1])
		case "cls", "name":
		default:
			lost = append(lost, key)
		}
	}
	if len(lost) > 0 {
		s.note(at, "%s of %s: not carried over; routes are RIP's, other settings are lines of its "+
			".lnx file", strings.Join(lost, ", "), name)
	}
	s.addrs[name] = s.address(at, ip, mininetBits)
	if !s.addrs[name].IsValid() { // the default of mininet
		s.addrs[name] = netip.PrefixFrom(toAddr(uint32(mininetBase+s.hosts)), mininetBits)
	}
	return node
}

func (s *script) addLink(args starlark.Tuple, options []starlark.Tuple) {
	at := s.caller()
	var names [2]string
	for i := range names {
		if i < len(args) {
			names[i] = asText(args[i])
		}
	}
	set := map[string]starlark.Value{}
	var lost []string
	for _, o := range options {
		key := asText(o[0])
		switch key {
		case "node1", "node2":
			names[key[4]-'1'] = asText(o[1])
		case "bw", "delay", "jitter", "loss", "max_queue_size", "params1", "params2":
			set[key] = o[1]
		case "cls", "port1", "port2", "intfName1", "intfName2", "use_htb", "use_tbf", "use_hfsc":
		default:
			lost = append(lost, key)
		}
	}
	if names[0] == "" || names[1] == "" {
		s.note(at, "the link is left out: a link has two ends whose names are known; write "+
			"addLink(h1, s1)")
		return
	}
	var link topology.Link
	for i, name := range names {
		link.Addrs[i] = s.addrOf(at, name, set[fmt.Sprintf("params%d", i+1)])
	}
	link.Words = s.words(at, set)
	if s.link(at, names[0], names[1], link) && len(lost) > 0 {
		s.note(at, "%s: not carried over; the impair lines of the two files can have more",
			strings.Join(lost, ", "))
	}
}

// addrOf returns the address of a node on a link: the address in the link's parameters, or the
// node's own if this is the node's first link.
func (s *script) addrOf(at place, node string, params starlark.Value) netip.Prefix {
	first := !s.addressed[node]
	s.addressed[node] = true
	if d, ok := params.(*starlark.Dict); ok {
		if ip, found, _ := d.Get(starlark.String("ip")); found {
			return s.address(at, asText(ip), mininetBits)
		}
	}
	if first {
		return s.addrs[node]
	}
	return netip.Prefix{}
}

// words returns the tc parameters of a link as arguments of an impair line.
func (s *script) words(at place, set map[string]starlark.Value) string {
	var words []string
	for _, part := range []struct{ key, form string }{
		{"delay", "delay %s"},
		{"jitter", "%s"},
		{"loss", "loss %s%%"},
		{"bw", "rate %smbit"},
		{"max_queue_size", "limit %s"},
	} {
		value, ok := set[part.key]
		if !ok || value == starlark.None {
			continue
		}
		text := asText(value)
		if part.key == "delay" && text != "" && !strings.ContainsAny(text, "smu") {
			text += "us" // tc reads a number without a unit in µs
		}
		if text == "" {
			s.note(at, "%s is not carried over: the script computes it from values that are not "+
				"known; write it as a number", part.key)
			continue
		}
		next := append(slices.Clone(words), fmt.Sprintf(part.form, text))
		if s.impair(at, strings.Join(next, " ")) != "" {
			words = next
		}
	}
	return strings.Join(words, " ")
}

// asText converts a text, a number or the name of a node to text; empty if the value is unknown.
func asText(v starlark.Value) string {
	switch v := v.(type) {
	case starlark.String:
		if isUnknown(v) {
			return ""
		}
		return string(v)
	case starlark.Int, starlark.Float:
		return v.String()
	case *thing:
		return v.name
	}
	return ""
}
