package drill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDrill plays every script of testdata against a host. Each begins with the clause that it
// tests.
func TestDrill(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.pkt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pkt")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Regexp(t, `^// RFC [0-9]+ §[0-9A-Z.]+(, RFC [0-9]+ §[0-9A-Z.]+)*: `, string(text))
			script, err := Parse(file, string(text))
			require.NoError(t, err)
			if err := script.Run(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
