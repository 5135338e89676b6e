package observe_test

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect opens a connection to port 80 of the second node.
func connect(t *testing.T, from, to *operator.Node) (client, server *node.Conn) {
	t.Helper()
	return operatortest.Connect(t, from, to, "10.0.0.2:80")
}

// pings sends echo requests and waits for the replies.
func pings(t *testing.T, from *operator.Node, count, size int) {
	t.Helper()
	testenv.Ask(t, from, control.Ping{
		Addr: netip.MustParseAddr("10.0.0.2"), Count: count, Size: size, Interval: time.Millisecond,
	})
}

// whole reads a complete pcapng file. It returns its packets' comments and its description of if0.
func whole(t *testing.T, file io.Reader) (comments []string, if0 pcapgo.NgInterface) {
	t.Helper()
	r, err := pcapgo.NewNgReader(file, pcapgo.NgReaderOptions{})
	require.NoError(t, err)
	for {
		_, _, options, err := r.ReadPacketDataWithOptions()
		if err == io.EOF { //nolint:errorlint // the reader returns it unwrapped
			break
		}
		require.NoError(t, err)
		comments = append(comments, strings.Join(options.Comments, ""))
	}
	if0, err = r.Interface(0)
	require.NoError(t, err)
	return comments, if0
}

// capturing captures on a node while f runs.
func capturing(t *testing.T, n *operator.Node, r control.Record, f func()) (control.Captured, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun, ended := make(chan struct{}), make(chan struct{})
	r.Begun = func() { close(begun) }
	var done any
	var err error
	go func() {
		defer close(ended)
		done, err = n.Do(ctx, r)
	}()
	<-begun
	f()
	cancel()
	<-ended
	answer, _ := done.(control.Captured)
	return answer, err
}

// TestCaptureComments checks that each segment has a comment with windows and state, and that
// packets lost by the link are marked.
func TestCaptureComments(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	client, server := connect(t, a, b)
	testenv.Ask(t, a, control.Impair{Iface: "if0", Way: control.WayOut, Words: "loss 30% seed 1"})
	var file bytes.Buffer
	done, err := capturing(t, a, control.Record{
		Filter: "tcp", Piece: func(p []byte) { file.Write(p) },
	}, func() {
		_, err := client.Write(make([]byte, 100_000))
		require.NoError(t, err)
		_, err = io.ReadFull(server, make([]byte, 100_000))
		require.NoError(t, err)
	})
	require.NoError(t, err)
	assert.Zero(t, done.Missed)
	comments, if0 := whole(t, &file)
	assert.Len(t, comments, int(done.Packets))
	assert.Equal(t, done.Packets, if0.Statistics.PacketsReceived)
	lost := 0
	for _, text := range comments {
		assert.Regexp(t, `cwnd=\d+ .*state=ESTABLISHED ca=(open|recovery|loss).* sid=\d`, text)
		if strings.HasPrefix(text, "dropped: lost by the link; ") {
			lost++
		}
	}
	assert.Positive(t, lost)
	ways := testenv.Ask(t, a, control.Impairments{Iface: "if0"})
	assert.LessOrEqual(t, lost, int(ways[0].Lost))
}

// The trace of a capture file equals the live trace of the same time.
func TestTraceFile(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	client, server := connect(t, a, b)
	var live []control.TracedSegment
	ended := make(chan struct{})
	begun := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		_, _ = a.Do(ctx, control.Trace{
			SID: client.SID(), Begun: func() { close(begun) },
			Segment: func(s control.TracedSegment) { live = append(live, s) },
		})
	}()
	<-begun
	var file bytes.Buffer
	_, err := capturing(t, a, control.Record{Piece: func(p []byte) { file.Write(p) }}, func() {
		_, err := client.Write(make([]byte, 5000))
		require.NoError(t, err)
		_, err = io.ReadFull(server, make([]byte, 5000))
		require.NoError(t, err)
	})
	require.NoError(t, err)
	cancel()
	<-ended
	require.NotEmpty(t, live)
	var again []control.TracedSegment
	done, err := observe.TraceFile(&file, "tcp port 80", func(s control.TracedSegment) {
		again = append(again, s)
	})
	require.NoError(t, err)
	assert.Len(t, again, int(done.Segments))
	for i := range min(len(live), len(again)) {
		one, other := live[i], again[i]
		assert.Equal(t, []any{one.Sent, one.Flags, one.Length, one.Left, one.Connection.State, one.At.UnixNano()},
			[]any{other.Sent, other.Flags, other.Length, other.Left, other.Connection.State, other.At.UnixNano()})
	}
	_, err = observe.TraceFile(strings.NewReader("no capture"), "", nil)
	require.ErrorContains(t, err, "not a pcapng file")
	_, err = observe.TraceFile(&file, "port x", nil)
	require.ErrorIs(t, err, control.ErrUsage)
}

// A slow reader misses packets. The response and the file count them, and the node does not wait.
func TestSlowReaderMissesPackets(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	var file bytes.Buffer
	goOn := make(chan struct{})
	first := true
	done, err := capturing(t, a, control.Record{Filter: "icmp", Piece: func(p []byte) {
		if file.Write(p); len(p) > 1000 && first {
			first = false
			<-goOn // continue only when more packets have arrived than may wait
		}
	}}, func() {
		pings(t, a, 1, 20_000) // makes the write block after the header
		for range observe.BacklogBytes/(2*16*60_000) + 3 {
			pings(t, a, 16, 60_000) // 16 requests with 44 fragments each, and the replies
		}
		close(goOn)
	})
	require.NoError(t, err)
	assert.Positive(t, done.Missed)
	comments, if0 := whole(t, &file)
	assert.Len(t, comments, int(done.Packets))
	assert.Equal(t, done.Missed, if0.Statistics.PacketsDropped)
	assert.Equal(t, done.Packets+done.Missed, if0.Statistics.PacketsReceived)
}

// A capture in several files writes valid files within the size limit, and deletes the oldest ones.
func TestCaptureInSeveralFiles(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	folder := t.TempDir()
	started := testenv.Ask(t, a, control.StartCapture{
		File: filepath.Join(folder, "x.pcapng"), FileSize: 5000, Files: 3, Filter: "icmp",
	})
	assert.Equal(t, 1, started.ID)
	pings(t, a, 30, 1000)
	done := testenv.Ask(t, a, control.StopCapture{})
	assert.Equal(t, uint64(60), done.Packets)
	assert.Empty(t, done.Problem)
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	assert.Len(t, names, 3)
	assert.Contains(t, names, done.File)
	for _, name := range names {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.LessOrEqual(t, info.Size(), int64(5000))
		f, err := os.Open(name)
		require.NoError(t, err)
		whole(t, f)
		require.NoError(t, f.Close())
	}
	_, err = a.Do(t.Context(), control.StopCapture{})
	require.ErrorIs(t, err, control.ErrNotCapturing)
}

// The statistics have the time of the capture's end, in the file's time unit.
func TestStatisticsTime(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	file := filepath.Join(t.TempDir(), "x.pcapng")
	began := time.Now()
	testenv.Ask(t, a, control.StartCapture{File: file})
	pings(t, a, 1, 0)
	testenv.Ask(t, a, control.StopCapture{})
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	_, if0 := whole(t, f)
	assert.WithinRange(t, if0.Statistics.LastUpdate, began.Add(-time.Second), time.Now().Add(time.Second))
}

// A capture overwrites only another capture, and only if the request allows that.
func TestCaptureOverwritesOnlyCaptures(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	dir := t.TempDir()
	other, old := filepath.Join(dir, "other"), filepath.Join(dir, "old.pcapng")
	require.NoError(t, os.WriteFile(other, []byte("root:x:0:0"), 0o600))
	testenv.Ask(t, a, control.StartCapture{File: old})
	pings(t, a, 1, 0)
	testenv.Ask(t, a, control.StopCapture{})
	was, err := os.ReadFile(old)
	require.NoError(t, err)
	for _, overwrite := range []bool{false, true} {
		for _, name := range []string{other, old} {
			if overwrite && name == old {
				continue
			}
			for _, req := range []any{
				control.Record{File: name, Overwrite: overwrite},
				control.StartCapture{File: name, Overwrite: overwrite},
				control.PcapStart{File: name, Overwrite: overwrite},
			} {
				_, err := a.Do(t.Context(), req)
				require.ErrorIs(t, err, os.ErrExist, "%T %s", req, name)
			}
		}
	}
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	assert.Equal(t, "root:x:0:0", string(text))
	text, err = os.ReadFile(old)
	require.NoError(t, err)
	assert.Equal(t, was, text)
	testenv.Ask(t, a, control.StartCapture{File: old, Overwrite: true, Filter: "udp"})
	testenv.Ask(t, a, control.StopCapture{})
	f, err := os.Open(old)
	require.NoError(t, err)
	comments, _ := whole(t, f)
	assert.Empty(t, comments)
	require.NoError(t, f.Close())
}

// A capture that cannot start leaves no file behind, and the node keeps running.
func TestCaptureThatFailsToStart(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	for _, name := range []string{"/nowhere/at/all", t.TempDir()} {
		_, err := a.Do(t.Context(), control.Record{File: name})
		require.Error(t, err)
		_, err = a.Do(t.Context(), control.StartCapture{File: name, Overwrite: true})
		require.Error(t, err)
	}
	list := testenv.Ask(t, a, control.Captures{})
	assert.Empty(t, list)
	pings(t, a, 1, 0)
}

// A node that stops closes its captures: the files are complete.
func TestStoppingNodeFinishesItsCaptures(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	name := filepath.Join(t.TempDir(), "x.pcapng")
	testenv.Ask(t, a, control.StartCapture{File: name, Filter: "icmp"})
	var stream bytes.Buffer
	done, err := capturing(t, a, control.Record{
		Filter: "icmp", Piece: func(p []byte) { stream.Write(p) },
	}, func() {
		pings(t, a, 5, 0)
		require.NoError(t, a.Close())
	})
	require.NoError(t, err)
	assert.Equal(t, uint64(10), done.Packets)
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	for _, r := range []io.Reader{f, &stream} {
		comments, if0 := whole(t, r)
		assert.Len(t, comments, 10)
		assert.Equal(t, uint64(10), if0.Statistics.PacketsReceived)
	}
}

func TestInvalidCaptures(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	for _, r := range []control.Record{
		{Snaplen: -1},
		{Snaplen: 70_000},
		{FileSize: 5},
		{File: "x", Files: 3},
		{File: "x", FileSize: -1},
		{Filter: "tcp and"},
	} {
		_, err := a.Do(t.Context(), r)
		require.ErrorIs(t, err, control.ErrUsage, r)
	}
	_, err := a.Do(t.Context(), control.Record{Iface: "if7"})
	require.ErrorIs(t, err, control.ErrNoSuchInterface)
	_, err = a.Do(t.Context(), control.StartCapture{})
	require.ErrorIs(t, err, control.ErrUsage)
	_, err = a.Do(t.Context(), control.Trace{Filter: "port"})
	require.ErrorIs(t, err, control.ErrUsage)
	_, err = a.Do(t.Context(), control.Trace{SID: 9})
	require.ErrorIs(t, err, control.ErrNoSuchSocket)
	_, err = a.Do(t.Context(), control.Samples{SID: 9})
	require.ErrorIs(t, err, control.ErrNoSuchSocket)
}

func TestEveryPacketIsWritten(t *testing.T) {
	dir := t.TempDir()
	a, b := operatortest.Two(t, node.Config{})
	file := filepath.Join(dir, "a.pcapng")
	testenv.Ask(t, a, control.PcapStart{File: file})
	err := control.Order(t.Context(), a, control.PcapStart{File: file})
	require.ErrorIs(t, err, control.ErrCapturing)
	client, server := connect(t, a, b)
	_, err = client.Write([]byte(strings.Repeat("x", 5000)))
	require.NoError(t, err)
	_, err = io.ReadFull(server, make([]byte, 5000))
	require.NoError(t, err)
	t.Log("# written packets are soon in the file, even if the node crashes")
	require.Eventually(t, func() bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() > 5000
	}, 10*time.Second, 20*time.Millisecond)
	c := testenv.Ask(t, a, control.PcapStop{})
	assert.GreaterOrEqual(t, c.Packets, uint64(3+4))
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Greater(t, info.Size(), int64(5000))
	_, err = a.Do(t.Context(), control.PcapStop{})
	require.ErrorIs(t, err, control.ErrNotCapturing)
}

// Packets from a node to itself cross lo and no other interface.
func TestLoopbackPackets(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	for iface, want := range map[string]int{"lo": 4, "if0": 4, "all": 8} {
		seen := map[string]int{}
		_, err := capturing(t, a, control.Record{
			Iface: iface, Lines: true, Filter: "icmp",
			Packet: func(p control.Packet) { seen[p.Iface]++ },
		}, func() {
			pings(t, a, 2, 0)
			for _, own := range []string{"10.0.0.1", "127.0.0.1"} {
				testenv.Ask(t, a, control.Ping{Addr: netip.MustParseAddr(own), Count: 1})
			}
		})
		require.NoError(t, err)
		assert.Equal(t, want, seen["lo"]+seen["if0"], iface)
		if iface == "all" {
			assert.Equal(t, map[string]int{"lo": 4, "if0": 4}, seen)
		}
	}
	var file bytes.Buffer
	_, err := capturing(t, a, control.Record{
		Filter: "icmp", Piece: func(p []byte) { file.Write(p) },
	}, func() { testenv.Ask(t, a, control.Ping{Addr: netip.MustParseAddr("10.0.0.1"), Count: 1}) })
	require.NoError(t, err)
	r, err := pcapgo.NewNgReader(&file, pcapgo.NgReaderOptions{})
	require.NoError(t, err)
	for range 2 {
		_, about, err := r.ReadPacketData()
		require.NoError(t, err)
		face, err := r.Interface(about.InterfaceIndex)
		require.NoError(t, err)
		assert.Equal(t, "lo", face.Name)
	}
	_, _, err = r.ReadPacketData()
	require.ErrorIs(t, err, io.EOF)
	own, err := r.Interface(1)
	require.NoError(t, err)
	assert.EqualValues(t, 2, own.Statistics.PacketsReceived)
}
