package workload

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The objects are those of the document's script: what base64 makes of 7400 random bytes, and
// of 740000.
func TestObjectsAreTheDocuments(t *testing.T) {
	cfg := ObjectsConfig{}.withDefaults()
	items := makeItems(&cfg, rand.New(rand.NewPCG(1, 2)))
	require.Len(t, items, 20)
	total := 0
	for i, o := range items {
		total += len(o.data)
		assert.Len(t, o.data, []int{999_651, 9_998}[i%2])
		lines := bytes.Split(bytes.TrimSuffix(o.data, []byte("\n")), []byte("\n"))
		for _, l := range lines[:len(lines)-1] {
			require.Len(t, l, 76)
		}
		raw, err := base64.StdEncoding.DecodeString(string(bytes.Join(lines, nil)))
		require.NoError(t, err)
		assert.Len(t, raw, []int{740_000, 7400}[i%2])
	}
	assert.Equal(t, 10_096_490, total)
	assert.Equal(t, "large-0", items[0].name)
	assert.Equal(t, "small-9", items[19].name)
	assert.NotEqual(t, items[0].data, items[2].data)
	again := makeItems(&cfg, rand.New(rand.NewPCG(1, 2)))
	assert.Equal(t, items[7].data, again[7].data)

	cfg.SmallestFirst = true
	assert.Equal(t, []int{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18},
		order(&cfg, items))
}

// A chunk, a frame or a prefix may be cut anywhere.
func TestStreamsAreReadHoweverTheyAreCut(t *testing.T) {
	cfg := ObjectsConfig{Pairs: 2, Small: 30, Large: 3000}.withDefaults()
	for _, framed := range []bool{false, true} {
		for _, cut := range []int{1, 2, 3, 15, 16, 17, 100, 1 << 20} {
			a, in := anInbox(t, cfg, framed)
			parts := inOrder(&cfg, a.items)
			if framed {
				parts = inTurns(a.items, 50)
			}
			stream := bytes.Join(parts, nil)
			for len(stream) > 0 {
				n := min(cut, len(stream))
				require.True(t, in.take(a.began, stream[:n]))
				stream = stream[n:]
			}
			assert.True(t, a.Done())
			assert.True(t, a.Result().Finished, a.Result().Failure)
		}
	}
}

func anInbox(t *testing.T, cfg ObjectsConfig, framed bool) (*ObjectsApp, *inbox) {
	t.Helper()
	l, err := ObjectsNetwork{}.Build(1)
	require.NoError(t, err)
	a := newApp(l.Left, makeItems(&cfg, l.Rand("")))
	tr := &transfer{app: a}
	a.counts = tr.count
	return a, &inbox{
		transfer: tr, framed: framed, objects: order(&cfg, a.items),
		arriving: make([]arriving, len(a.items)),
	}
}

// Invalid objects, and more objects than requested, do no harm.
func TestStreamsThatMakeNoSense(t *testing.T) {
	cfg := ObjectsConfig{Pairs: 1, Small: 30, Large: 60}.withDefaults()
	for _, c := range []struct {
		framed bool
		stream string
	}{
		{false, "             abc"},
		{false, "              -1"},
		{false, "              17"},
		{false, "                "},
		{true, "\x00\x07\x00\x01x"},
		{true, "\x00\x00\x00\x00"},
	} {
		_, in := anInbox(t, cfg, c.framed)
		assert.False(t, in.take(1, []byte(c.stream)), "%q", c.stream)
	}
	a, in := anInbox(t, cfg, false)
	stream := bytes.Join(inOrder(&cfg, a.items), nil)
	stream[20] ^= 1
	assert.False(t, in.take(1, append(stream, 'x')), "one byte too many")
	r := a.Result()
	assert.False(t, r.Finished)
	assert.Equal(t, "large-0 is not what it was: 2 of 2 objects", r.Failure)
}
