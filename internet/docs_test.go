package internet_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first test in docs/testing.md equals one that runs here.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/testing.md")
	require.NoError(t, err)
	code, err := os.ReadFile("first_test.go")
	require.NoError(t, err)
	_, body, _ := strings.Cut(string(code), "package internet_test")
	assert.Contains(t, string(page), "```go\npackage first\n\n"+strings.TrimSpace(body)+"\n```\n")
}
