package link_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// impairedPipe is an impaired device, and the other end of the pipe below it.
type impairedPipe struct {
	t   *testing.T
	now clock.Time
	dev *link.Impaired
	far *link.End
}

func newImpairedPipe(t *testing.T, packets int, out, in netem.Config) *impairedPipe {
	t.Helper()
	h := &impairedPipe{t: t, now: 1}
	near, far := link.Pipe(packets)
	require.NoError(t, near.Attach(3))
	var err error
	h.dev, err = link.Impair(near, func() clock.Time { return h.now }, link.Impairment{
		Iface: 3, Out: out, In: in, Stream: netem.Streams(1),
	})
	require.NoError(t, err)
	h.far = far
	return h
}

// train returns n packets of size bytes, numbered from first.
func train(first, n, size int) buffer.Train {
	t := buffer.Train{Size: size, Count: n, Bytes: n * size, Iface: 3, NextHop: netip.AddrFrom4([4]byte{10, 0, 0, 2})}
	for i := range n {
		p := make([]byte, size)
		binary.BigEndian.PutUint32(p, uint32(first+i))
		t.Pieces = append(t.Pieces, p)
	}
	return t
}

func (h *impairedPipe) write(trains ...buffer.Train) {
	h.t.Helper()
	n, err := h.dev.WriteBatch(trains)
	require.NoError(h.t, err)
	require.Len(h.t, trains, n)
}

// arrived returns the numbers of the packets that arrived at the other end.
func (h *impairedPipe) arrived() (list []int) {
	p := make([]byte, 2000)
	for n, ok := h.far.TryRead(p); ok; n, ok = h.far.TryRead(p) {
		require.GreaterOrEqual(h.t, n, 4)
		list = append(list, int(binary.BigEndian.Uint32(p)))
	}
	return list
}

// read returns the numbers of the packets that the device delivers. It reads as a node does.
func (h *impairedPipe) read() (list []int) {
	frames := make([]buffer.Frame, 4)
	for {
		n, err := h.dev.ReadBatch(frames)
		if n == 0 {
			if err != nil {
				require.ErrorIs(h.t, err, link.ErrWouldBlock)
			}
			return list
		}
		for _, f := range frames[:n] {
			require.Equal(h.t, 3, f.Iface)
			require.Equal(h.t, len(f.Data), f.Size)
			list = append(list, int(binary.BigEndian.Uint32(f.Data)))
		}
	}
}

func (h *impairedPipe) send(first, n int) {
	h.t.Helper()
	for i := range n {
		_, err := h.far.Write(train(first+i, 1, 100).Pieces[0])
		require.NoError(h.t, err)
	}
}

func TestImpairedDelaysBothDirections(t *testing.T) {
	h := newImpairedPipe(t, 0, netem.Config{Delay: 10 * time.Millisecond},
		netem.Config{Delay: time.Second})
	assert.Equal(t, clock.Never, h.dev.Deadline())
	h.write(train(1, 3, 100), train(4, 1, 60))
	assert.Empty(t, h.arrived())
	due := clock.Time(1).Add(10 * time.Millisecond)
	assert.Equal(t, due, h.dev.Deadline())
	h.now = due - 1
	assert.Empty(t, h.read())
	assert.Empty(t, h.arrived())
	h.now = due
	assert.Empty(t, h.read(), "nothing to read, but due packets leave")
	assert.Equal(t, []int{1, 2, 3, 4}, h.arrived())
	assert.Equal(t, clock.Never, h.dev.Deadline())

	h.send(7, 9)
	assert.Empty(t, h.read())
	assert.Equal(t, due.Add(time.Second), h.dev.Deadline())
	h.now = due.Add(time.Second)
	assert.Equal(t, []int{7, 8, 9, 10, 11, 12, 13, 14, 15}, h.read())
	assert.Equal(t, clock.Never, h.dev.Deadline())
}

func TestImpairedWithoutDelayPassesAtOnce(t *testing.T) {
	h := newImpairedPipe(t, 0, netem.Config{}, netem.Config{})
	h.write(train(1, 60, 1400))
	assert.Len(t, h.arrived(), 60)
	h.send(1, 100)
	assert.Len(t, h.read(), 100)
}

func TestImpairedLosesInEachDirection(t *testing.T) {
	h := newImpairedPipe(t, 0, netem.Config{Loss: netem.ListedLoss{2}}, netem.Config{
		Loss: netem.ListedLoss{1, 3}, Duplicate: 1,
	})
	h.write(train(1, 4, 100))
	assert.Equal(t, []int{1, 3, 4}, h.arrived())
	h.send(1, 4)
	assert.Equal(t, []int{2, 2, 4, 4}, h.read())
	out, in := h.dev.Impairments(3)
	assert.Equal(t, []uint64{4, 1, 0}, []uint64{out.In, out.Lost, out.Duplicated})
	assert.Equal(t, []uint64{4, 2, 2}, []uint64{in.In, in.Lost, in.Duplicated})
	out, _ = h.dev.Impairments(9)
	assert.Zero(t, out.In)
}

// Packets stay on the impaired link while the underlying device has no room. They set no deadline,
// because that device signals when it has room. The impaired device reports no room meanwhile.
func TestImpairedWaitsForRoom(t *testing.T) {
	h := newImpairedPipe(t, 10, netem.Config{Delay: time.Millisecond}, netem.Config{})
	assert.Positive(t, h.dev.Room())
	rung := 0
	h.dev.Feed(func() { rung++ })
	h.write(train(1, 30, 100))
	h.now = h.now.Add(time.Millisecond)
	assert.Empty(t, h.read())
	assert.Zero(t, h.dev.Room())
	assert.Zero(t, h.dev.Pending())
	assert.Equal(t, clock.Never, h.dev.Deadline())
	var got []int
	for turn := range 3 {
		was := rung
		got = append(got, h.arrived()...)
		assert.Equal(t, turn < 2, rung > was, "the pipe signals room only while the owner waits")
		h.read()
	}
	assert.Len(t, got, 30)
	assert.IsIncreasing(t, got)
	assert.Positive(t, h.dev.Room())
}

// A flood does not block the owner. The owner reads the rest in the next iteration, which follows
// at once.
func TestImpairedReadIsBounded(t *testing.T) {
	h := newImpairedPipe(t, 4096, netem.Config{}, netem.Config{Delay: time.Second})
	for i := range 400 {
		h.send(i, 1)
		if i%2 == 0 { // packets of different sizes are in separate frames
			_, err := h.far.Write(make([]byte, 150))
			require.NoError(t, err)
		}
	}
	frames := make([]buffer.Frame, 16)
	n, err := h.dev.ReadBatch(frames)
	require.NoError(t, err)
	assert.Zero(t, n)
	assert.True(t, h.dev.Deadline().Due(h.now))
	for turns := 0; h.dev.Deadline().Due(h.now); turns++ {
		_, _ = h.dev.ReadBatch(frames)
		require.Less(t, turns, 10)
	}
	h.now = h.now.Add(time.Second)
	assert.Len(t, h.read(), 600)
}

func TestImpairedWithManyPacketSizes(t *testing.T) {
	h := newImpairedPipe(t, 4096, netem.Config{Delay: time.Millisecond}, netem.Config{})
	var want []int
	for i := range 300 {
		h.write(train(i, 1, 60+i))
		want = append(want, i)
	}
	h.now = h.now.Add(time.Millisecond)
	h.read()
	assert.Equal(t, want, h.arrived(), "more trains than a batch can hold")
}

func TestCloseSendsPacketsInTransit(t *testing.T) {
	h := newImpairedPipe(t, 0, netem.Config{Delay: time.Hour, Rate: netem.BitsPerSecond(1000)},
		netem.Config{})
	h.write(train(1, 5, 100))
	assert.Empty(t, h.arrived())
	require.NoError(t, h.dev.Close())
	assert.Equal(t, []int{1, 2, 3, 4, 5}, h.arrived())
	_, err := h.far.Read(make([]byte, 10))
	assert.Error(t, err, "the underlying device is closed")
}

func TestImpairedForwardsErrorsAndCounters(t *testing.T) {
	near, far := link.Pipe(0)
	broken := &brokenDevice{End: near}
	dev, err := link.Impair(broken, func() clock.Time { return 1 }, link.Impairment{
		Stream: netem.Streams(1),
	})
	require.NoError(t, err)
	_, err = dev.ReadBatch(make([]buffer.Frame, 4))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = dev.WriteBatch([]buffer.Train{train(1, 1, 60)})
	require.NoError(t, err, "the device has no such interface")
	one := train(1, 1, 60)
	one.Iface = 0
	_, err = dev.WriteBatch([]buffer.Train{one})
	require.ErrorIs(t, err, net.ErrClosed)
	assert.Equal(t, -1, dev.FD())
	assert.Same(t, broken, dev.Unwrap())
	require.NoError(t, far.Close())

	_, err = link.Impair(near, nil, link.Impairment{
		Out: netem.Config{Duplicate: 2}, Stream: netem.Streams(1),
	})
	assert.ErrorIs(t, err, netem.ErrConfig)
}

// brokenDevice fails every call.
type brokenDevice struct{ *link.End }

func (*brokenDevice) ReadBatch([]buffer.Frame) (int, error)  { return 0, net.ErrClosed }
func (*brokenDevice) WriteBatch([]buffer.Train) (int, error) { return 0, net.ErrClosed }
