package lnx_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// checkRoundTrip requires that a Config means the same after it was written
// and read again.
func checkRoundTrip(t *testing.T, cfg *lnx.Config) {
	t.Helper()
	text := cfg.Format()
	again, err := lnx.Parse("again.lnx", text)
	require.NoError(t, err, "%s", text)
	assert.Equal(t, cfg.Plain(), again.Plain(), "%s", text)
	assert.Equal(t, lnx.GrammarNew, again.Grammar)
	assert.Equal(t, string(text), string(again.Format()))
}

// checkErrors requires of any error what a terminal and its reader rely on.
func checkErrors(t *testing.T, err error) {
	t.Helper()
	var all lnx.Errors
	require.ErrorAs(t, err, &all)
	require.NotEmpty(t, all)
	require.LessOrEqual(t, len(all), 101)
	for i, e := range all {
		assert.NotEmpty(t, e.Msg)
		if i > 0 && i < 100 {
			assert.LessOrEqual(t, all[i-1].Line, e.Line)
		}
	}
	for _, r := range err.Error() {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			t.Fatalf("control character %U in %q", r, err.Error())
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.lnx", netsFolder + "/*/*.lnx", netsFolder + "/*/*/*.lnx"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg, err := lnx.Parse("N.lnx", text)
		if err != nil {
			require.Nil(t, cfg)
			checkErrors(t, err)
			return
		}
		checkRoundTrip(t, cfg)
		assert.NoError(t, lnx.CheckNetwork(cfg).Err())
	})
}

// TestFormat holds what is written of a file: defaults left out, everything
// else in one order and the new grammar.
func TestFormat(t *testing.T) {
	files, err := filepath.Glob("testdata/format/*.lnx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			cfg := parse(t, string(text))
			checkRoundTrip(t, cfg)
			wantFile := strings.TrimSuffix(file, ".lnx") + ".want"
			if *update {
				require.NoError(t, os.WriteFile(wantFile, cfg.Format(), 0o644))
			}
			want, err := os.ReadFile(wantFile)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(cfg.Format()))
		})
	}
}
