package rdt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rdt"
)

func TestValidName(t *testing.T) {
	for name, valid := range map[string]bool{
		"a": true, "a b": true, "a/b.c": true, "...": true, "übung/日本": true, "a:b": true,
		"": false, ".": false, "..": false, "../a": false, "a/../b": false, "a/./b": false,
		"/a": false, "a/": false, "a//b": false, "a\nb": false, "a\x00b": false, "a\\b": false,
		"\x1b[2J": false, "a\u202eb": false, "\xff": false,
		strings.Repeat("x", rdt.MaxName): true, strings.Repeat("x", rdt.MaxName+1): false,
	} {
		assert.Equal(t, valid, rdt.ValidName(name), "%q", name)
	}
}

func TestInvalidListings(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	good := "rdt-listing 1 1325 128\n5 " + sum + " a\n"
	_, err := rdt.ParseListing([]byte(good))
	require.NoError(t, err)
	for _, text := range []string{
		"", "\n", "<html>\n", "rdt-listing 1\n", "rdt-listing 1 1325\n", "rdt-listing 2 1325 128\n",
		"rdt-listing 1 0 128\n", "rdt-listing 1 1325 0\n", "rdt-listing 1 65508 128\n",
		"rdt-listing 1 1325 40000\n", "rdt-listing 1 +5 128\n", "rdt-listing 1 1325 128",
		good + good, good[:len(good)-1], good + "5 " + sum + " a\n", good + "\n",
		good + "x " + sum + " b\n", good + "-1 " + sum + " b\n", good + "05 " + sum + " b\n",
		good + "5 " + sum[1:] + " b\n", good + "5 " + sum[1:] + "x b\n", good + "5 " + sum + "\n",
		good + "5 " + sum + " ../b\n", good + "99999999999 " + sum + " b\n",
		"rdt-listing 1 1325 128\n" + strings.Repeat("\n", rdt.MaxEntries+1),
	} {
		_, err := rdt.ParseListing([]byte(text))
		require.ErrorIs(t, err, rdt.ErrMalformed, "%.80q", text)
	}
}

// A parsed listing has only valid names. It is the same after it is written and parsed again.
func FuzzListing(f *testing.F) {
	f.Add([]byte("rdt-listing 1 1325 128\n5 " + strings.Repeat("0a", 32) + " a b/c\n"))
	f.Add([]byte("rdt-listing 1 1325 128\n"))
	f.Add([]byte("rdt-listing 1 1 1\n0 \n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := rdt.ParseListing(b)
		if err != nil {
			require.ErrorIs(t, err, rdt.ErrMalformed)
			return
		}
		for i := range l.Entries {
			require.True(t, rdt.ValidName(l.Entries[i].Name))
		}
		again, err := rdt.ParseListing(rdt.AppendListing(nil, &l))
		require.NoError(t, err)
		require.Equal(t, l, again)
	})
}
