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

// checkRoundTrip checks that a Config has the same meaning after it was written and read again.
func checkRoundTrip(t *testing.T, cfg *lnx.Config) {
	t.Helper()
	text := cfg.Format()
	again, err := lnx.Parse("again.lnx", text)
	require.NoError(t, err, "%s", text)
	assert.Equal(t, cfg.Plain(), again.Plain(), "%s", text)
	assert.Equal(t, lnx.GrammarNew, again.Grammar)
	assert.Equal(t, string(text), string(again.Format()))
}

// checkErrors checks the properties that every error must have, so that a terminal can show it.
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

// TestFormat compares the text that Format writes with the expected text: without defaults, in a
// fixed order, in the new grammar.
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

// RFC 5952 §4 and §6: an address is written in one form, however the file spells it, also with a
// zone, or with brackets and a port.
func TestRFC5952_4_Addresses(t *testing.T) {
	for in, want := range map[string]string{
		"2001:0db8:0:0:1:0:0:1":                  "2001:db8::1:0:0:1",                    // §4.1, §4.2.3: shorten the first of two equal runs
		"2001:db8:0:0:0:0:2:1":                   "2001:db8::2:1",                        // §4.2.1: shorten as much as possible
		"2001:db8::1:1:1:1:1":                    "2001:db8:0:1:1:1:1:1",                 // §4.2.2: do not shorten a single field
		"2001:db8:0:1:0:0:0:1":                   "2001:db8:0:1::1",                      // §4.2.3: shorten the longest run
		"2001:DB8:AAAA:BBBB:CCCC:DDDD:EEEE:00Ff": "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ff", // §4.3: lower case
		"2001:db8::192.0.2.1":                    "2001:db8::c000:201",                   // §5: not a known prefix
	} {
		text := "interface if0 2001:db8:ff::1/64 127.0.0.1:5000\ninterface if1 " + in + "/64 127.0.0.1:5001\n" +
			"neighbor fe80::a at 127.0.0.1:5002 via if0\n" +
			"routing static\nroute 2001:db8:fe::/48 via FE80:0::A%if0\npublish 8080 [" + in + "]:80\n"
		written := string(parse(t, text).Format())
		assert.Contains(t, written, "interface if1 "+want+"/64 127.0.0.1:5001\n")
		assert.Contains(t, written, "via fe80::a%if0\n")
		assert.Contains(t, written, "publish 8080 ["+want+"]:80\n")
	}
}
