package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func play(t *testing.T, window int, args ...string) string {
	t.Helper()
	var steps []arrival
	for _, arg := range args {
		s, err := parseArrival(arg)
		require.NoError(t, err)
		steps = append(steps, s)
	}
	if args == nil {
		steps = documentArrivals
	}
	var out bytes.Buffer
	require.NoError(t, playArrivals(&out, window, steps))
	return out.String()
}

// The receiver's segments follow the seventh and eighth steps of RFC 9293 §3.10.7.4, RFC 2018 §4
// and RFC 2883 §4.
func TestArrivalExplanations(t *testing.T) {
	for name, story := range map[string]struct {
		window int
		args   []string
	}{
		"document": {65535, nil},
		"narrow": {4000, []string{
			"1000+500", "0+5000", "5000+1", "read", "4000+0F", "4000+0F", "3000+500", "-10+10",
			"4001+0F", "0+0",
		}},
		"shut": {2048, []string{"0+2048", "2048+100", "read", "3000+2000", "5000+0F", "4096+0F"}},
	} {
		got := play(t, story.window, story.args...)
		file := filepath.Join("testdata", "arrivals", name+".txt")
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, name)
	}
}

func TestArrivalSyntax(t *testing.T) {
	for _, bad := range []string{
		"", "x", "1+", "+1", "1+-1", "1+65496", "268435457+1", "-268435457+1", "1+1G", "READ", "F",
	} {
		_, err := parseArrival(bad)
		require.Error(t, err, bad)
	}
	s, err := parseArrival("-5+10F")
	require.NoError(t, err)
	assert.Equal(t, arrival{Offset: -5, Len: 10, FIN: true}, s)
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestArrivalsFail(t *testing.T) {
	require.ErrorIs(t, playArrivals(full{}, 65535, documentArrivals), errFull)
	require.Error(t, playArrivals(&bytes.Buffer{}, 1, nil), "no window")
}

// In whatever order segments arrive, the application reads the bytes that the peer sent.
func FuzzArrivals(f *testing.F) {
	f.Add([]byte{1, 5, 0, 5, 255, 3, 2, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		var steps []arrival
		for i := 0; i+1 < len(b) && i < 400; i += 2 {
			steps = append(steps, arrival{
				Offset: int(int8(b[i])) * 300, Len: int(b[i+1]&127) * 300,
				FIN: false, Read: b[i+1] > 200,
			})
		}
		steps = append(steps, arrival{Read: true})
		require.NoError(t, playArrivals(&bytes.Buffer{}, 30000, steps))
	})
}
