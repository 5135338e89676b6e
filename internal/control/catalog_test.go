package control_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Every request and event of the package is in its lists, which the HTTP API is made from.
func TestCatalogIsComplete(t *testing.T) {
	requests, events, sentinels := declared(t)
	var listed []string
	names, resources := map[string]bool{}, map[string]bool{}
	for _, k := range control.Kinds() {
		listed = append(listed, k.Request.Name())
		assert.False(t, names[k.Name], "%s: two requests have that name", k.Name)
		names[k.Name] = true
		if k.Resource != "" {
			assert.False(t, resources[k.Resource], "%s: two requests look at it", k.Resource)
			resources[k.Resource] = true
		}
		for _, name := range k.Files {
			f, ok := k.Request.FieldByName(name)
			require.True(t, ok, "%s.%s", k.Request, name)
			assert.Contains(t, []string{"string", "[]string"}, f.Type.String())
		}
	}
	assert.ElementsMatch(t, requests, listed, "the types that embed Answer or have a method answers, and Kinds")
	listed = nil
	for _, e := range control.Events() {
		listed = append(listed, reflect.TypeOf(e).Name())
	}
	assert.ElementsMatch(t, events, listed, "the types with a method Event, and Events")
	assert.Len(t, control.Sentinels(), sentinels, "the errors of errors.go, and Sentinels")
}

// declared reads the names of the requests and events from the source, and counts the errors.
func declared(t *testing.T) (requests, events []string, sentinels int) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil {
					break
				}
				receiver, ok := n.Recv.List[0].Type.(*ast.Ident)
				switch {
				case ok && n.Name.Name == "answers":
					requests = append(requests, receiver.Name)
				case n.Name.Name == "Event":
					events = append(events, receiver.Name)
				}
			case *ast.TypeSpec:
				s, ok := n.Type.(*ast.StructType)
				if !ok || len(s.Fields.List) == 0 || len(s.Fields.List[0].Names) > 0 {
					break
				}
				index, ok := s.Fields.List[0].Type.(*ast.IndexExpr)
				if ok && index.X.(*ast.Ident).Name == "Answer" {
					requests = append(requests, n.Name.Name)
				}
			case *ast.ValueSpec:
				if strings.HasPrefix(n.Names[0].Name, "Err") {
					sentinels++
				}
			}
			return true
		})
	}
	return requests, events, sentinels
}
