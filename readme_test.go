package tidepool_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The README's program is a part of one that is compiled and run.
func TestReadmeShowsAnExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok)
	snippet, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	flush := strings.ReplaceAll(string(examples), "\n\t", "\n")
	assert.Contains(t, flush, snippet)
}
