package linktest_test

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/link/linktest"
)

func train(packets ...string) buffer.Train {
	t := buffer.Train{Size: len(packets[0]), Count: len(packets)}
	for _, p := range packets {
		t.Pieces = append(t.Pieces, []byte(p[:1]), []byte(p[1:]))
		t.Bytes += len(p)
	}
	return t
}

func read(t *testing.T, d link.Device, most int) []buffer.Frame {
	t.Helper()
	frames := make([]buffer.Frame, most)
	n, err := d.ReadBatch(frames)
	require.NoError(t, err)
	return frames[:n]
}

func TestPipe(t *testing.T) {
	a, b := linktest.NewPipe(linktest.Config{IfaceA: 1, IfaceB: 2, Packets: 5})
	told := 0
	b.Feed(func() { told++ })
	_, err := b.ReadBatch(make([]buffer.Frame, 1))
	require.ErrorIs(t, err, link.ErrWouldBlock)

	t.Log("# whole trains go through, copied, and are refused when too much is under way")
	first := train("abcd", "efgh", "ij")
	n, err := a.WriteBatch([]buffer.Train{first, train("kl"), train("mn", "op"), train("q!")})
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, 1, told)
	assert.Equal(t, 1, a.Room())
	for _, p := range first.Pieces {
		clear(p)
	}
	assert.Equal(t, []buffer.Frame{{Data: []byte("abcdefghij"), Size: 4, Iface: 2}}, read(t, b, 1))
	assert.Equal(t, []buffer.Frame{{Data: []byte("kl"), Size: 2, Iface: 2}}, read(t, b, 1))

	t.Log("# what was lent is free when more is asked for")
	_, err = b.ReadBatch(make([]buffer.Frame, 1))
	require.ErrorIs(t, err, link.ErrWouldBlock)
	assert.Equal(t, 5, a.Room())

	t.Log("# a train beyond the limit goes alone")
	long := train("1.", "2.", "3.", "4.", "5.", "6.", "7.")
	n, err = b.WriteBatch([]buffer.Train{long, long})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, 1, read(t, a, 4)[0].Iface)

	t.Log("# the end can still be read")
	n, err = a.WriteBatch([]buffer.Train{train("zz")})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	require.NoError(t, a.Close())
	assert.Equal(t, []byte("zz"), read(t, b, 4)[0].Data)
	_, err = b.ReadBatch(make([]buffer.Frame, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = b.WriteBatch([]buffer.Train{train("zz")})
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestPipeLoses(t *testing.T) {
	a, b := linktest.NewPipe(linktest.Config{
		Lose: func(p []byte) bool { return bytes.HasPrefix(p, []byte("x")) },
	})
	n, err := a.WriteBatch([]buffer.Train{train("aa", "xb", "cc", "d."), train("xx"), train("yy", "x!")})
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	frames := read(t, b, 4)
	require.Len(t, frames, 2)
	assert.Equal(t, []byte("aaccd."), frames[0].Data)
	assert.Equal(t, []byte("yy"), frames[1].Data)
}

// A reader that takes a short batch for the last is told of what came meanwhile,
// though it was told once before.
func TestAShortBatchIsNotTheLast(t *testing.T) {
	a, b := linktest.NewPipe(linktest.Config{})
	told := 0
	b.Feed(func() { told++ })
	_, err := a.WriteBatch([]buffer.Train{train("aa"), train("bbb"), train("cc")})
	require.NoError(t, err)
	require.Len(t, read(t, b, 2), 2)
	_, err = a.WriteBatch([]buffer.Train{train("dd")})
	require.NoError(t, err)
	assert.Equal(t, 2, told)
	require.Len(t, read(t, b, 2), 1)
	assert.Equal(t, 3, told)
	require.Len(t, read(t, b, 2), 1)
	assert.Equal(t, 3, told)
}
