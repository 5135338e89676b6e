package capture_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
)

var interfaces = []capture.Interface{
	{Name: "if0", Addr: "10.0.0.1/24"},
	{Name: "if1", Addr: "10.2.0.1/24"},
}

const noon = 1_795_262_400_123_456_789 // the time 2026-11-21 12:00:00.123456789 UTC

func TestWriteAndRead(t *testing.T) {
	var file bytes.Buffer
	w, err := capture.New(&file, interfaces, 0)
	require.NoError(t, err)
	syn := segment(t, layers.TCP{SYN: true, Options: options()}, 0)
	data := segment(t, layers.TCP{ACK: true, PSH: true}, 100)

	require.NoError(t, w.Packet(noon, 0, capture.Outbound, "", syn))
	require.NoError(t, w.Packet(noon+1, 1, capture.Inbound, "cwnd=14480", data[:40], data[40:]))
	require.NoError(t, w.Drop(noon+2, 0, capture.Inbound, "ttl exceeded", data[:20], data[20:]))
	require.NoError(t, w.Flush())

	r, err := pcapgo.NewNgReader(&file, pcapgo.NgReaderOptions{})
	require.NoError(t, err)
	want := []struct {
		data      []byte
		iface     int
		direction pcapgo.NgEpbFlag
		comments  []string
	}{
		{syn, 0, pcapgo.NgEpbFlagDirectionOutbound, nil},
		{data, 1, pcapgo.NgEpbFlagDirectionInbound, []string{"cwnd=14480"}},
		{data, 0, pcapgo.NgEpbFlagDirectionInbound, []string{"dropped: ttl exceeded"}},
	}
	for i, p := range want {
		got, info, options, err := r.ReadPacketDataWithOptions()
		require.NoError(t, err)
		assert.Equal(t, p.data, got)
		assert.Equal(t, len(p.data), info.Length)
		assert.Equal(t, int64(noon+i), info.Timestamp.UnixNano())
		assert.Equal(t, p.iface, info.InterfaceIndex)
		assert.Equal(t, p.direction, options.Flags.Direction)
		assert.Equal(t, p.comments, options.Comments)
	}
	_, _, err = r.ReadPacketData()
	require.ErrorIs(t, err, io.EOF)

	for i, want := range interfaces {
		got, err := r.Interface(i)
		require.NoError(t, err)
		assert.Equal(t, want.Name, got.Name)
		assert.Equal(t, want.Addr, got.Description)
		assert.Equal(t, layers.LinkType(12), got.LinkType)
		assert.Equal(t, uint32(capture.DefaultSnaplen), got.SnapLength)
	}
	assert.Equal(t, "tidepool", r.SectionInfo().Application)
	assert.Empty(t, r.SectionInfo().OS, "the file does not name the system that wrote it")
}

func TestSnaplenKeepsTheLength(t *testing.T) {
	packet := segment(t, layers.TCP{ACK: true}, 1360)
	splits := map[string][][]byte{
		"one piece":            {packet},
		"header and payload":   {packet[:40], packet[40:]},
		"cut in first piece":   {packet[:700], packet[700:]},
		"cut at a piece":       {packet[:96], packet[96:]},
		"an empty piece":       {packet[:40], nil, packet[40:]},
		"pieces after the cut": {packet[:40], packet[40:200], packet[200:300], packet[300:]},
	}
	for name, pieces := range splits {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			w, err := capture.New(&file, interfaces, 96)
			require.NoError(t, err)
			require.NoError(t, w.Packet(noon, 0, capture.Outbound, "", pieces...))
			require.NoError(t, w.Flush())
			r, err := pcapgo.NewNgReader(&file, pcapgo.NgReaderOptions{})
			require.NoError(t, err)
			got, info, err := r.ReadPacketData()
			require.NoError(t, err)
			assert.Equal(t, packet[:96], got)
			assert.Equal(t, len(packet), info.Length)
		})
	}
}

// TestMissedPackets checks that the block of a packet has the number of packets missed before it.
func TestMissedPackets(t *testing.T) {
	packet := segment(t, layers.TCP{ACK: true}, 100)
	var file bytes.Buffer
	w, err := capture.New(&file, interfaces, 0)
	require.NoError(t, err)
	for _, missed := range []uint64{0, 7, 1 << 40} {
		require.NoError(t, w.Record(&capture.Record{
			At: noon, Iface: 1, Direction: capture.Outbound, Comment: "cwnd=10",
			Length: len(packet), Missed: missed,
		}, packet[:60], packet[60:]))
	}
	require.NoError(t, w.Flush())
	var got []uint64
	require.NoError(t, capture.Read(&file, func(c *capture.Captured) error {
		assert.Equal(t, packet, c.Data)
		assert.Equal(t, "cwnd=10", c.Comment)
		assert.True(t, c.Out)
		got = append(got, c.Missed)
		return nil
	}))
	assert.Equal(t, []uint64{0, 7, 1 << 40}, got)
}

func TestEmptyAndLongestPackets(t *testing.T) {
	var file bytes.Buffer
	w, err := capture.New(&file, interfaces, 0)
	require.NoError(t, err)
	require.NoError(t, w.Drop(noon, 0, capture.Inbound, "short"))
	require.NoError(t, w.Drop(noon, 0, capture.Inbound, "short", nil))
	require.NoError(t, w.Packet(noon, 0, capture.Inbound, "", make([]byte, 65536)))
	require.NoError(t, w.Flush())
	r, err := pcapgo.NewNgReader(&file, pcapgo.NgReaderOptions{})
	require.NoError(t, err)
	for range 2 {
		got, info, err := r.ReadPacketData()
		require.NoError(t, err)
		assert.Empty(t, got)
		assert.Zero(t, info.Length)
	}
	got, info, err := r.ReadPacketData()
	require.NoError(t, err)
	assert.Len(t, got, capture.DefaultSnaplen)
	assert.Equal(t, 65536, info.Length)
}

func TestLongCommentIsCut(t *testing.T) {
	var file bytes.Buffer
	w, err := capture.New(&file, interfaces, 0)
	require.NoError(t, err)
	require.NoError(t, w.Packet(noon, 0, capture.Inbound, strings.Repeat("x", 1<<17), nil))
	require.NoError(t, w.Packet(noon, 0, capture.Inbound, "after it", nil))
	require.NoError(t, w.Flush())
	r, err := pcapgo.NewNgReader(&file, pcapgo.NgReaderOptions{})
	require.NoError(t, err)
	_, _, options, err := r.ReadPacketDataWithOptions()
	require.NoError(t, err)
	assert.Equal(t, []string{strings.Repeat("x", 1024)}, options.Comments)
	_, _, options, err = r.ReadPacketDataWithOptions()
	require.NoError(t, err)
	assert.Equal(t, []string{"after it"}, options.Comments)
}

func TestUnknownInterface(t *testing.T) {
	_, err := capture.New(io.Discard, nil, 0)
	require.ErrorIs(t, err, capture.ErrNoInterface)

	var file bytes.Buffer
	w, err := capture.New(&file, interfaces, 0)
	require.NoError(t, err)
	require.ErrorIs(t, w.Packet(noon, 2, capture.Inbound, "", nil), capture.ErrNoInterface)
	require.ErrorIs(t, w.Packet(noon, -1, capture.Inbound, "", nil), capture.ErrNoInterface)
	require.NoError(t, w.Packet(noon, 1, capture.Inbound, "", nil), "the writer still works")
}

var errDiskFull = errors.New("no space left")

// fullDisk accepts room bytes and then fails.
type fullDisk struct{ room int }

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	if n < len(p) {
		return n, errDiskFull
	}
	return n, nil
}

func TestWriteErrorSticks(t *testing.T) {
	w, err := capture.New(&fullDisk{room: 1 << 20}, interfaces, 0)
	require.NoError(t, err)
	packet := segment(t, layers.TCP{ACK: true}, 1360)
	for range 2000 {
		if err = w.Packet(noon, 0, capture.Outbound, "", packet); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, errDiskFull)
	require.ErrorIs(t, w.Packet(noon, 0, capture.Outbound, "", packet), errDiskFull)
	require.ErrorIs(t, w.Flush(), errDiskFull)

	w, err = capture.New(&fullDisk{}, interfaces, 0)
	require.NoError(t, err, "the header is still buffered")
	require.ErrorIs(t, w.Flush(), errDiskFull)
	require.ErrorIs(t, w.Packet(noon, 0, capture.Outbound, "", packet), errDiskFull)
}

func TestPacketAllocatesNothing(t *testing.T) {
	packet := segment(t, layers.TCP{ACK: true}, 1360)
	pieces := [][]byte{packet[:40], packet[40:]}
	w, err := capture.New(io.Discard, interfaces, 0)
	require.NoError(t, err)
	cut := capture.Record{At: noon, Length: len(packet), Missed: 3}
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if w.Packet(noon, 0, capture.Outbound, "cwnd=14480", pieces...) != nil ||
			w.Record(&cut, packet[:96]) != nil {
			t.Error("write failed")
		}
	}))
}

func BenchmarkPacket1400(b *testing.B) {
	packet := segment(b, layers.TCP{ACK: true}, 1360)
	pieces := [][]byte{packet[:40], packet[40:]}
	w, err := capture.New(io.Discard, interfaces, 0)
	require.NoError(b, err)
	b.SetBytes(int64(len(packet)))
	b.ReportAllocs()
	for b.Loop() {
		_ = w.Packet(noon, 0, capture.Outbound, "", pieces...)
	}
}
