package workload

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The objects are made as by the document's script: they are the base64 encoding of 7400 random
// bytes, or of 740000.
func TestObjectsOfTheDocument(t *testing.T) {
	cfg := ObjectsConfig{}.withDefaults()
	items := makeItems(&cfg, rand.New(rand.NewPCG(1, 2)))
	require.Len(t, items, 20)
	total := 0
	for i, o := range items {
		total += len(o.Data)
		assert.Len(t, o.Data, []int{999_651, 9_998}[i%2])
		lines := bytes.Split(bytes.TrimSuffix(o.Data, []byte("\n")), []byte("\n"))
		for _, l := range lines[:len(lines)-1] {
			require.Len(t, l, 76)
		}
		raw, err := base64.StdEncoding.DecodeString(string(bytes.Join(lines, nil)))
		require.NoError(t, err)
		assert.Len(t, raw, []int{740_000, 7400}[i%2])
	}
	assert.Equal(t, 10_096_490, total)
	assert.Equal(t, "large-0", items[0].Name)
	assert.Equal(t, "small-9", items[19].Name)
	assert.NotEqual(t, items[0].Data, items[2].Data)
	again := makeItems(&cfg, rand.New(rand.NewPCG(1, 2)))
	assert.Equal(t, items[7].Data, again[7].Data)

	cfg.SmallestFirst = true
	assert.Equal(t, []int{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18},
		order(&cfg, items))
}

// A chunk, a frame or a prefix may be cut anywhere.
func TestStreamsInPieces(t *testing.T) {
	cfg := ObjectsConfig{Pairs: 2, Small: 30, Large: 3000}.withDefaults()
	cfg.Chunk = 50
	for _, cfg.Arm = range []Arm{Sequential, Interleaved} {
		for _, cut := range []int{1, 2, 3, 15, 16, 17, 100, 1 << 20} {
			a, in := newClientConn(t, &cfg)
			stream := bytes.Join(cfg.Stream(a.items), nil)
			for len(stream) > 0 {
				n := min(cut, len(stream))
				require.True(t, in.Take(stream[:n]))
				stream = stream[n:]
			}
			assert.True(t, a.Done())
			assert.True(t, a.Result().Finished, a.Result().Failure)
		}
	}
}

func newClientConn(t *testing.T, cfg *ObjectsConfig) (*ObjectsApp, *clientConn) {
	t.Helper()
	l, err := ObjectsNetwork{}.Build(1)
	require.NoError(t, err)
	a := newApp(l.Left, makeItems(cfg, l.Rand("")))
	tr := &transfer{app: a, cfg: cfg}
	a.counts = tr.count
	return a, tr.clientConn(nil, order(cfg, a.items))
}

// Invalid streams, and more data than requested, are refused.
func TestInvalidStreams(t *testing.T) {
	cfg := ObjectsConfig{Pairs: 1, Small: 30, Large: 60}.withDefaults()
	for _, c := range []struct {
		arm    Arm
		stream string
	}{
		{Sequential, "             abc"},
		{Sequential, "              -1"},
		{Sequential, "              17"},
		{Sequential, "                "},
		{Interleaved, "\x00\x07\x00\x01x"},
		{Interleaved, "\x00\x00\x00\x00"},
	} {
		cfg.Arm = c.arm
		_, in := newClientConn(t, &cfg)
		assert.False(t, in.Take([]byte(c.stream)), "%q", c.stream)
	}
	cfg.Arm = Sequential
	a, in := newClientConn(t, &cfg)
	stream := bytes.Join(cfg.Stream(a.items), nil)
	stream[20] ^= 1
	assert.False(t, in.Take(append(stream, 'x')), "an extra byte")
	r := a.Result()
	assert.False(t, r.Finished)
	assert.Equal(t, "large-0 arrived corrupted: 2 of 2 objects", r.Failure)
}
