package formula

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table of functions in docs/EXPERIMENTS.md")

// The reference ends with a table of all functions: mathematics first, then theory, each sorted by
// name.
func TestReference(t *testing.T) {
	const heading = "**Functions**\n\n"
	path := filepath.Join("..", "..", "..", "docs", "EXPERIMENTS.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	front, table, found := strings.Cut(string(page), heading)
	require.True(t, found)
	var mathematics, theory strings.Builder
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		f := functions[name]
		assert.NotEmpty(t, f.about, name)
		b := &theory
		if f.source == "" {
			b = &mathematics
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.usage(name), f.about, f.source)
	}
	want := "| function | value | source |\n|---|---|---|\n" + mathematics.String() +
		theory.String()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(front+heading+want), 0o644))
		return
	}
	assert.Equal(t, want, table, "go test ./internal/lab/formula -update writes the table")
}
