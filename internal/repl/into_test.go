package repl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTablesWrittenToFiles checks that li FILE and lr FILE write the output of li and lr to a file.
// The error contains the file and the reason.
func TestTablesWrittenToFiles(t *testing.T) {
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

		require.ErrorContains(t, s.Execute(t.Context(), name+` "`+dir+`"`), "is a directory; use a file name")
		none := filepath.Join(dir, "none")
		require.EqualError(t, s.Execute(t.Context(), name+` "`+filepath.Join(none, "x")+`"`),
			name+": "+filepath.Join(none, "x")+": no such directory: "+none)
		require.ErrorContains(t, s.Execute(t.Context(), name+" a b"), "unexpected argument")
	}
	require.Error(t, open(t, &fake{}, Config{}).Execute(t.Context(), "routes x"))
}

// TestTablesReplaceOnlyTables checks that li FILE, ln FILE and lr FILE replace only empty files and
// files that begin with such a table. They follow no symbolic link.
func TestTablesReplaceOnlyTables(t *testing.T) {
	dir := t.TempDir()
	notes, link := filepath.Join(dir, "notes"), filepath.Join(dir, "link")
	table, empty := filepath.Join(dir, "table"), filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(notes, []byte("mine\n"), 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.NoError(t, os.WriteFile(table, []byte(routesHead+strings.Repeat("row\n", 100)), 0o600))
	require.NoError(t, os.Symlink(table, link))
	for _, name := range []string{"li", "ln", "lr"} {
		s := open(t, &fake{}, Config{})
		require.EqualError(t, s.Execute(t.Context(), name+" "+notes), name+": "+notes+
			": file already exists and has no table of li, ln or lr; use another name")
		require.ErrorContains(t, s.Execute(t.Context(), name+" "+link), "it is a symbolic link")
		require.NoError(t, s.Execute(t.Context(), name))
		want := s.out.String()
		for _, path := range []string{table, empty} {
			require.NoError(t, s.Execute(t.Context(), name+" "+path))
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, want, string(got))
		}
	}
	got, err := os.ReadFile(notes)
	require.NoError(t, err)
	assert.Equal(t, "mine\n", string(got))
}
