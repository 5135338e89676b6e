package sim_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// module is the prefix of this module's import paths.
const module = "github.com/tidepool-net/tidepool/"

// deciders returns the packages that affect packets in a world. They are package sim and its
// dependencies, the application protocols, scripted controllers, and internal/lab/simulation. The
// rest of the laboratory only evaluates results.
func deciders(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if .GoFiles}}{{.ImportPath}}{{end}}",
		"./...", "../rcp", "../rdt", "../tcp/starlark", "../lab/simulation").Output()
	require.NoError(t, err)
	var all []string
	for path := range strings.FieldsSeq(string(out)) {
		judges := strings.HasPrefix(path, module+"internal/lab/") && !strings.HasSuffix(path, "/simulation")
		if strings.HasPrefix(path, module) && !judges {
			all = append(all, path)
		}
	}
	require.Contains(t, all, module+"internal/tcp/congestion")
	return all
}

// guessed are the files that use floating point only for a guess, which integer arithmetic then
// corrects.
var guessed = map[string]bool{"pareto.go": true}

// TestNoFusedMultiplyAdd checks that all products are converted to float64 explicitly. On arm64 and
// others, the compiler may otherwise fuse x*y+z into one instruction. Its result can differ in the
// last bit from that of amd64's two instructions, and then runs differ.
func TestNoFusedMultiplyAdd(t *testing.T) {
	testenv.NeedLong(t) // builds for another machine, which takes half a minute
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	fused := regexp.MustCompile(`\((\S+\.go):(\d+)\)\s+FN?M(ADD|SUB)[SD]\b`)
	compile := exec.Command("go", append([]string{"build", "-gcflags=-S"}, deciders(t)...)...)
	compile.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	var listing bytes.Buffer
	compile.Stderr = &listing
	require.NoError(t, compile.Run(), "build for arm64")
	require.Contains(t, listing.String(), "FMULD", "a listing of floating point")
	for _, m := range fused.FindAllStringSubmatch(listing.String(), -1) {
		path, err := filepath.Rel(root, m[1])
		if err == nil && !strings.HasPrefix(path, "..") && !guessed[filepath.Base(path)] {
			t.Errorf("%s:%s: fused multiply-add: write float64(x*y) + z", path, m[2])
		}
	}
}

// exactMath matches the names of package math that give the same result on every machine:
// constants, and the functions that IEEE 754 defines.
var exactMath = regexp.MustCompile(`^(Max|Min)?(U?[Ii]nt|Float)\d*|^(Sqrt|Floor|Ceil|Trunc|Round|` +
	`RoundToEven|Abs|Copysign|Signbit|Inf|IsInf|NaN|IsNaN|Mod|Modf|Frexp|Ldexp|Pi|E|Sqrt2|Ln2)$`)

// Package math only promises approximate results, which may differ between machines. So code that
// affects packets uses its exact functions only.
func TestOnlyExactMathFunctions(t *testing.T) {
	require.NotRegexp(t, exactMath, "Cbrt")
	require.NotRegexp(t, exactMath, "Exp")
	for _, path := range deciders(t) {
		files, err := filepath.Glob(filepath.Join("../..", strings.TrimPrefix(path, module), "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") || guessed[filepath.Base(name)] {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, 0)
			require.NoError(t, err)
			for _, imported := range file.Imports {
				if imported.Path.Value != `"math"` {
					continue
				}
				assert.Nil(t, imported.Name, "%s: math by another name", name)
				ast.Inspect(file, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && x.Name == "math" {
							assert.Regexp(t, exactMath, s.Sel.Name, "%s", set.Position(s.Pos()))
						}
					}
					return true
				})
			}
		}
	}
}
