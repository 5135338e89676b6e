package main

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// The size limits: see docs/style.md.
const (
	maxFileLines     = 500
	maxTestFileLines = 800
	maxFuncLines     = 70
	maxFields        = 25
	maxMethods       = 6
	maxArguments     = 6
)

func files(t *testing.T) []text {
	t.Helper()
	all, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	readTree = sync.OnceValues(func() ([]text, error) { return collect(os.DirFS("../../..")) })
	parsed   = sync.OnceValues(func() ([]source, error) {
		files, err := readTree()
		if err != nil {
			return nil, err
		}
		return parse(files)
	})
)

func TestSizes(t *testing.T) {
	testenv.NeedNoRace(t)
	for _, s := range sources(t) {
		limit := maxFileLines
		if s.test {
			limit = maxTestFileLines
		}
		if n := s.lines(); n > limit {
			t.Errorf("%s: %d lines, want at most %d", s.path, n, limit)
		}
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				checkFunc(t, s, n)
			case *ast.TypeSpec:
				checkType(t, s, n)
			}
			return true
		})
	}
}

func checkFunc(t *testing.T, s source, f *ast.FuncDecl) {
	t.Helper()
	if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > maxFuncLines {
		t.Errorf("%s: func %s has %d lines, want at most %d", s.at(f), f.Name, n, maxFuncLines)
	}
	if n := f.Type.Params.NumFields(); n > maxArguments {
		t.Errorf("%s: func %s has %d arguments, want at most %d", s.at(f), f.Name, n, maxArguments)
	}
}

func checkType(t *testing.T, s source, spec *ast.TypeSpec) {
	t.Helper()
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		if n := typ.Fields.NumFields(); n > maxFields && !manyFields.MatchString(spec.Name.Name) {
			t.Errorf("%s: struct %s has %d fields, want at most %d", s.at(spec), spec.Name, n, maxFields)
		}
	case *ast.InterfaceType:
		if n := typ.Methods.NumFields(); n > maxMethods {
			t.Errorf("%s: interface %s has %d methods, want at most %d",
				s.at(spec), spec.Name, n, maxMethods)
		}
	}
}

func TestPureRoomsHaveNoConcurrency(t *testing.T) {
	for _, s := range sources(t) {
		if r, _ := ruleOf(s.dir()); s.test || r.kind == driver {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
				t.Errorf("%s: %T in a pure folder", s.at(n), n)
			}
			return true
		})
	}
}

func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		r, ok := ruleOf(s.dir())
		if !ok && !s.test {
			t.Errorf("%s: internal/ci/house/arrows.go has no line for this folder", s.path)
			continue
		}
		for _, i := range s.file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if s.test {
				if where := forbidden(name); strings.HasPrefix(where, "nowhere") {
					t.Errorf("%s: %s may be imported %s", s.at(i), name, where)
				}
			} else if why := r.imports(name); why != "" {
				t.Errorf("%s: %s", s.at(i), why)
			}
		}
	}
}

// Every arrow in the table is used by a file.
func TestArrowsAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		r, _ := ruleOf(s.dir())
		for _, i := range s.file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			for arrow := range strings.FieldsSeq(r.ours) {
				below, all := strings.CutSuffix(arrow, "*")
				to := short(strings.TrimPrefix(name, module+"/"))
				if !s.test && (to == arrow || all && strings.HasPrefix(to, below)) {
					used[r.dir+" "+arrow] = true
				}
			}
		}
	}
	for _, r := range folderRules {
		for arrow := range strings.FieldsSeq(r.ours) {
			if !used[r.dir+" "+arrow] {
				t.Errorf("internal/ci/house/arrows.go: no file of %s imports %s", r.dir, arrow)
			}
		}
	}
}

func TestArchitectureHasTheArrows(t *testing.T) {
	for _, f := range files(t) {
		if f.path != "docs/ARCHITECTURE.md" {
			continue
		}
		if now, err := drawn(f.text); err != nil || now != f.text {
			t.Errorf("%s is not up to date (%v): go run ./internal/ci/house -arrows", f.path, err)
		}
	}
}

func TestMeasures(t *testing.T) {
	testenv.NeedNoRace(t)
	all, err := measures(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.broken() {
			t.Errorf("%s: %d, want at most %d", m.what, m.value, max(m.limit, m.known))
		}
	}
}

func TestPackageComments(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			documented[s.dir()] = documented[s.dir()] || s.file.Doc.Text() != ""
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no package comment", dir)
		}
	}
}

// Tests wait for events or run in virtual time. Only benchmarks may sleep, because they may measure
// how late a sleeper wakes up. All tests of adapters run in bubbles.
func TestNoTestSleeps(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test || s.dir() == "adapters" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			switch {
			case !ok:
				f, ok := n.(*ast.FuncDecl)
				return !ok || !benchmarks(f)
			case calls(call, "synctest", "Test"), calls(call, "internet", "Test"),
				s.dir() == "internet" && fmt.Sprint(call.Fun) == "Test":
				return false // in a bubble, sleeping takes no time
			case calls(call, "time", "Sleep"):
				t.Errorf("%s: a test sleeps", s.at(call))
			}
			return true
		})
	}
}

// openers lists the files and folders that may open files without internal/files. Their file names
// come from the system or from the code itself, or the code runs only in tests and measurements.
var openers = []string{
	"internal/files", "internal/ci", "internal/link", "internal/api/process_linux.go",
	"internal/netctl/file.go", "internal/netctl/process.go", "internal/netctl/ssh.go",
	"internal/netctl/state.go",
	"judge", "test", "bench", "adapters", "netns",
}

// A file that an operator names may be a pipe, which blocks its opener, or an endless device, so
// only one package opens such files.
func TestFilesAreOpenedInOnePlace(t *testing.T) {
	for _, s := range sources(t) {
		opens := func(root string) bool { return under(s.path, root) }
		if s.test || slices.ContainsFunc(openers, opens) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			for _, name := range []string{"Open", "OpenFile", "Create", "ReadFile", "WriteFile"} {
				if ok && calls(call, "os", name) {
					t.Errorf("%s: os.%s: want a function of internal/files", s.at(call), name)
				}
			}
			return true
		})
	}
}

// benchmarks reports whether f takes a *testing.B.
func benchmarks(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		star, ok := p.Type.(*ast.StarExpr)
		if !ok {
			return false
		}
		sel, ok := star.X.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "B"
	})
}

func calls(call *ast.CallExpr, pkg, name string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg
}

// obsolete maps each replaced RFC, which must not be cited, to its successor.
var obsolete = map[string]string{
	"793": "9293", "879": "9293", "6093": "9293", "6429": "9293", "6528": "9293", "6691": "9293",
	"1323": "7323", "2581": "5681", "2582": "6582", "3782": "6582", "2988": "6298", "3517": "6675",
	"6937": "9937", "8312": "9438", "2140": "9040", "1388": "2453", "1723": "2453",
}

func TestComments(t *testing.T) {
	testenv.NeedNoRace(t)
	citation := regexp.MustCompile(`\bRFC ?([0-9]+)\b`)
	unfinished := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	for _, s := range sources(t) {
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				if mark := unfinished.FindString(c.Text); mark != "" {
					t.Errorf("%s: %s: finish it or open an issue", s.at(c), mark)
				}
				for _, m := range citation.FindAllStringSubmatch(c.Text, -1) {
					if by, ok := obsolete[m[1]]; ok {
						t.Errorf("%s: cites RFC %s, which RFC %s replaced", s.at(c), m[1], by)
					}
				}
			}
		}
	}
}

// Paths of one machine do not work on other machines.
func TestNoMachinePaths(t *testing.T) {
	testenv.NeedNoRace(t)
	roots := []string{"home", "root", "Users", "work", "workspace", "farm", "mnt", "tmp"}
	machine := regexp.MustCompile("(?m)(?:^|[\\s\"'`=(,:])/(?:" + strings.Join(roots, "|") + ")/.*")
	for _, f := range files(t) {
		if found := machine.FindString(f.text); found != "" {
			t.Errorf("%s: names a path of one machine: %q", f.path, strings.TrimSpace(found))
		}
	}
}

// The checks above would also pass on an empty tree.
func TestTreeIsRead(t *testing.T) {
	var dirs []string
	for _, s := range sources(t) {
		dirs = append(dirs, s.dir())
	}
	for _, want := range []string{"internal/clock", "internal/capture", "bench", "quic", "adapters"} {
		if !slices.Contains(dirs, want) {
			t.Errorf("no source of %s was read", want)
		}
	}
	if all := files(t); !slices.ContainsFunc(all, func(f text) bool { return f.path == "go.mod" }) {
		t.Error("go.mod was not read")
	}
}
