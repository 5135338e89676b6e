package repl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTablesIntoFiles: li FILE and lr FILE write what li and lr print, and say which file they could
// not write, and why.
func TestTablesIntoFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a table")
	for _, name := range []string{"li", "lr"} {
		s := open(t, &fake{}, Config{})
		require.NoError(t, s.Execute(t.Context(), name))
		want := s.out.String()
		require.NoError(t, s.Execute(t.Context(), name+` "`+path+`"`))
		assert.Empty(t, s.out.String())
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, string(got))

		require.ErrorContains(t, s.Execute(t.Context(), name+` "`+dir+`"`), "it is a folder: want a file")
		none := filepath.Join(dir, "none")
		require.EqualError(t, s.Execute(t.Context(), name+` "`+filepath.Join(none, "x")+`"`),
			name+": "+filepath.Join(none, "x")+": there is no folder "+none)
		require.ErrorContains(t, s.Execute(t.Context(), name+" a b"), "nothing may follow here")
	}
	require.Error(t, open(t, &fake{}, Config{}).Execute(t.Context(), "routes x"))
}
