package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ruleOf returns the rule of a folder. The table has the folder's own name, or the pattern DIR/* of
// its parent.
func ruleOf(dir string) (folderRule, bool) {
	for _, name := range []string{dir, path.Dir(dir) + "/*"} {
		if i := slices.IndexFunc(folderRules, func(r folderRule) bool { return r.dir == name }); i >= 0 {
			return folderRules[i], true
		}
	}
	return folderRule{}, false
}

// imports explains why a file of the folder must not import a package, or returns "".
func (r folderRule) imports(pkg string) string {
	if ours, ok := strings.CutPrefix(pkg, module+"/"); ok {
		name := short(ours)
		if slices.ContainsFunc(strings.Fields(r.ours), func(pattern string) bool {
			below, ok := strings.CutSuffix(pattern, "*")
			return pattern == name || ok && strings.HasPrefix(name, below)
		}) {
			return ""
		}
		return fmt.Sprintf("no arrow leads from %s to %s; internal/ci/house/arrows.go has them",
			r.dir, name)
	}
	if where := forbidden(pkg); strings.HasPrefix(where, "nowhere") {
		return fmt.Sprintf("%s may be imported %s", pkg, where)
	} else if where != "" && !slices.Contains(strings.Fields(where), r.dir) &&
		!(where == "tests" && r.ofTests()) {
		return fmt.Sprintf("%s may be imported only in %s", pkg, where)
	}
	if r.kind != driver && (pkg == "sync" || strings.HasPrefix(pkg, "sync/")) &&
		!slices.Contains(strings.Fields(r.others), pkg) {
		return fmt.Sprintf("%s has one owner and needs no %s", r.dir, pkg)
	}
	if r.kind == pure && !slices.Contains(common, pkg) &&
		!slices.ContainsFunc(strings.Fields(r.others), func(p string) bool {
			return under(pkg, p)
		}) {
		return fmt.Sprintf("%s is pure: it must not import %s", r.dir, pkg)
	}
	return ""
}

// forbidden returns the only folder that may import a package, or "" if every folder may.
func forbidden(pkg string) string {
	for prefix, where := range onlyIn {
		if under(pkg, prefix) && pkg != "math/rand/v2" {
			return where
		}
	}
	return ""
}

// ofTests reports whether the package contains only test helpers.
func (r folderRule) ofTests() bool {
	return strings.HasSuffix(r.dir, "test") || under(r.dir, "test") ||
		r.dir == "internal/ci/testenv"
}

func TestImportsOfRoom(t *testing.T) {
	for _, c := range []struct{ dir, pkg, want string }{
		{"internal/tcp", module + "/internal/clock", ""},
		{"internal/tcp", "crypto/sha256", ""},
		{"internal/tcp", module + "/internal/ip", "no arrow leads from internal/tcp to ip"},
		{"internal/tcp", "net", "internal/tcp is pure: it must not import net"},
		{"internal/tcp", "sync/atomic", "internal/tcp has one owner and needs no sync/atomic"},
		{"internal/buffer", "sync/atomic", ""},
		{"internal/control", "net", ""},
		{"internal/control", "sync", "internal/control has one owner and needs no sync"},
		{"internal/lab/plan", "go.starlark.net/starlark", "may be imported only in internal/tcp/starlark"},
		{"internal/tcp/starlark", "go.starlark.net/starlark", ""},
		{"internal/node", "github.com/stretchr/testify/require", "may be imported only in tests"},
		{"internal/ci/testenv", "github.com/stretchr/testify/require", ""},
		{"internal/node", "math/rand", "may be imported nowhere"},
		{"internal/node", "math/rand/v2", ""},
		{"internal/lab", module + "/internal/lab/plan", ""},
		{"internal/lab", module + "/internal/label", "no arrow"},
	} {
		r, ok := ruleOf(c.dir)
		require.True(t, ok, c.dir)
		if got := r.imports(c.pkg); c.want == "" {
			assert.Empty(t, got)
		} else {
			assert.Contains(t, got, c.want)
		}
	}
}

const embedding = `package p
type inner struct { a, b int; deeper }
type deeper struct { c int }
type outer struct { *inner; d int }
func (inner) one() {}
func (*deeper) two() {}
func (o *outer) three() {}
func (o *outer) one() {}
`

func TestPromotedMethodsAndFieldsCount(t *testing.T) {
	files, err := parse([]text{{"p/p.go", embedding}})
	require.NoError(t, err)
	all := types(files)
	methods, fields := promoted(all, typeName{"p", "outer"})
	assert.Len(t, methods, 3)  // one, two, three
	assert.Equal(t, 6, fields) // inner, a, b, deeper, c, d
}

// The core and each other top-level folder have their own limits. A folder without a limit fails.
func TestSizesOfAreas(t *testing.T) {
	files, err := parse([]text{
		{"p.go", "package p\n"},
		{"cmd/a/a.go", "package a\n\nvar a int\n"},
		{"internal/b/b_test.go", "package b\n"},
		{"new/c/c.go", "package c\n"},
	})
	require.NoError(t, err)
	values := map[string]measure{}
	for _, m := range sizes(files) {
		values[m.what] = m
	}
	assert.Equal(t, 5, values["lines of Go without tests"].value)
	assert.Equal(t, 4, values["of them in the core"].value)
	assert.Equal(t, 1, values["of them in new"].value)
	assert.True(t, values["of them in new"].broken())
	assert.False(t, values["of them in bench"].broken())
}

func TestBrokenMeasures(t *testing.T) {
	assert.False(t, measure{value: 60, limit: 60}.broken())
	assert.True(t, measure{value: 61, limit: 60}.broken())
	assert.False(t, measure{value: 276, limit: 60, known: 276}.broken())
	assert.True(t, measure{value: 277, limit: 60, known: 276}.broken())
}
