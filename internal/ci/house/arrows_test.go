package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
		r, ok := roomOf(c.dir)
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

func TestBrokenMeasures(t *testing.T) {
	assert.False(t, measure{value: 60, limit: 60}.broken())
	assert.True(t, measure{value: 61, limit: 60}.broken())
	assert.False(t, measure{value: 276, limit: 60, known: 276}.broken())
	assert.True(t, measure{value: 277, limit: 60, known: 276}.broken())
}
