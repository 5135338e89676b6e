package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// open sends a GET with a streamed answer.
func (b *bed) open(ctx context.Context, t *testing.T, path, accept string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	resp, err := b.http.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return resp
}

func (b *bed) ping(t *testing.T, count int) {
	t.Helper()
	testenv.Ask(t, b.nodes["A"], control.Ping{
		Addr: netip.MustParseAddr("10.0.0.2"), Count: count, Interval: 1_000_000,
	})
}

// TestRawCapture checks that a GET returns a pcapng file that ends after count packets, with
// both directions, the interfaces' names and the number of missed packets.
func TestRawCapture(t *testing.T) {
	b := newBed(t)
	resp := b.open(t.Context(), t, "/v1/nodes/A/capture?filter=icmp&count=4", "")
	assert.Equal(t, typeCapture, resp.Header.Get("Content-Type"))
	b.ping(t, 1) // one request at a time, because a reply may take longer than the interval
	b.ping(t, 1)
	r, err := pcapgo.NewNgReader(resp.Body, pcapgo.NgReaderOptions{})
	require.NoError(t, err)
	var ways []pcapgo.NgEpbFlag
	for {
		_, info, options, err := r.ReadPacketDataWithOptions()
		if err == io.EOF { //nolint:errorlint // the reader does not wrap it
			break
		}
		require.NoError(t, err)
		assert.Equal(t, 84, info.Length)
		ways = append(ways, options.Flags.Direction)
	}
	out, in := pcapgo.NgEpbFlagDirectionOutbound, pcapgo.NgEpbFlagDirectionInbound
	assert.Equal(t, []pcapgo.NgEpbFlag{out, in, out, in}, ways)
	face, err := r.Interface(0)
	require.NoError(t, err)
	assert.Equal(t, "if0", face.Name)
	assert.Equal(t, uint64(4), face.Statistics.PacketsReceived)
	assert.Zero(t, face.Statistics.PacketsDropped)

	t.Log("# which one stops by its number, and that knows whether it had all, as is described")
	number, err := strconv.Atoi(resp.Header.Get(headerRunning))
	require.NoError(t, err)
	assert.Positive(t, number)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	var d struct {
		Paths map[string]struct {
			Get struct {
				Responses map[string]struct{ Headers map[string]any }
			}
		}
	}
	require.NoError(t, json.Unmarshal(openAPIDocument, &d))
	described := d.Paths["/v1/nodes/{node}/capture"].Get.Responses["200"].Headers
	assert.ElementsMatch(t, []string{headerRunning, "Trailer", headerResult},
		slices.Collect(maps.Keys(described)))
	result := resp.Trailer.Get(headerResult)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(result))
	require.NoError(t, err, result)
	schema, err := describe(t, openAPIDocument).compiler.Compile("openapi.json#/components/schemas/" +
		"Captured")
	require.NoError(t, err)
	require.NoError(t, schema.Validate(value), result)
	assert.Contains(t, result, `"packets":4`)
}

// TestTraceAndSampleStreams checks that a trace and samples of a connection arrive as lines and as
// events, as documented.
func TestTraceAndSampleStreams(t *testing.T) {
	b := newBed(t)
	d := describe(t, openAPIDocument)
	ask := func(req any, node string) any {
		a, err := b.nodes[node].Do(t.Context(), req)
		require.NoError(t, err)
		return a
	}
	accepted := make(chan int, 1)
	defer b.nodes["B"].Watch(func(e control.Event) {
		if a, ok := e.(control.Accepted); ok {
			accepted <- a.Socket.SID
		}
	})()
	listener := ask(control.Listen{Port: 7000}, "B").(control.Socket)
	traced := b.open(t.Context(), t, "/v1/nodes/B/streams/trace?sid=0",
		typeLines+", */*;q=0.1")
	assert.Equal(t, 0, listener.SID)
	sock := ask(control.Connect{Addr: netip.MustParseAddr("10.0.0.2"), Port: 7000}, "A").(control.Socket)
	sampled := b.open(t.Context(), t, "/v1/nodes/A/streams/samples?every_ns=-1", typeEvents)
	ask(control.Write{SID: sock.SID, Data: make([]byte, 5000)}, "A")
	ask(control.Close{SID: sock.SID}, "A")
	server := <-accepted // B accepts later than A connects
	assert.Len(t, ask(control.Read{SID: server, N: 5000, Full: true}, "B").(control.Data).Bytes, 5000)
	ask(control.Close{SID: server}, "B")

	lines, err := io.ReadAll(traced.Body)
	require.NoError(t, err)
	d.holds(t, "GET", "/v1/nodes/B/streams/trace", 200, typeLines, lines)
	var first control.TracedSegment
	var kinds []string
	var bytes int
	for text := range strings.Lines(string(lines)) {
		var l streamLine
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		kinds = append(kinds, l.Event)
		if l.Event != "segment" {
			continue
		}
		var s control.TracedSegment
		require.NoError(t, json.Unmarshal(l.Data, &s))
		if first.Left == "" {
			first = s
		}
		bytes += s.Length
	}
	assert.Equal(t, []string{"running", "segment"}, kinds[:2])
	assert.Equal(t, "result", kinds[len(kinds)-1])
	assert.GreaterOrEqual(t, bytes, 5000)
	assert.Equal(t, "10.0.0.2:7000", first.Left)
	assert.Equal(t, "S", first.Flags)
	assert.False(t, first.Sent)
	assert.Zero(t, first.Seq)

	events := bufio.NewScanner(sampled.Body)
	var names []string
	for events.Scan() {
		if name, ok := strings.CutPrefix(events.Text(), "event: "); ok {
			names = append(names, name)
		}
	}
	require.NoError(t, events.Err())
	assert.Equal(t, []string{"running", "sample"}, names[:2])
	assert.Equal(t, "result", names[len(names)-1])
}

// TestReaderDisconnects checks that a reader's capture and trace end when the reader disconnects.
func TestReaderDisconnects(t *testing.T) {
	b := newBed(t)
	ctx, cancel := context.WithCancel(t.Context())
	_ = b.open(ctx, t, "/v1/nodes/A/capture", "")
	_ = b.open(ctx, t, "/v1/nodes/A/streams/trace?filter=tcp", typeEvents)
	list := testenv.Ask(t, b.nodes["A"], control.Captures{})
	assert.Len(t, list, 2)
	cancel()
	require.Eventually(t, func() bool {
		list, err := control.Ask(t.Context(), b.nodes["A"], control.Captures{})
		return err == nil && len(list) == 0
	}, 20*time.Second, time.Millisecond)
}

// packetBlocks counts the complete enhanced packet blocks of a capture (pcapng §4.3), even if it
// arrived in pieces.
func packetBlocks(capture []byte) (n int) {
	for len(capture) >= 8 {
		kind, size := binary.LittleEndian.Uint32(capture), int(binary.LittleEndian.Uint32(capture[4:]))
		if size > len(capture) {
			return n
		}
		if kind == 6 {
			n++
		}
		capture = capture[size:]
	}
	return n
}

// TestClientRecords checks that a client receives a capture unchanged from its first packet on,
// and the statistics when the capture stops.
func TestClientRecords(t *testing.T) {
	b := newBed(t)
	ctx, stop := context.WithCancel(t.Context())
	begun, came := make(chan struct{}), make(chan struct{})
	var all bytes.Buffer
	reached := false
	type outcome struct {
		done control.Captured
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		done, err := control.Ask(ctx, b.client(t, "A"), control.Record{
			Iface: "if0", Filter: "icmp or drop", Snaplen: 64,
			Begun: func() { close(begun) },
			Piece: func(p []byte) {
				all.Write(p)
				if !reached && packetBlocks(all.Bytes()) == 6 {
					reached = true
					close(came)
				}
			},
		})
		ended <- outcome{done, err}
	}()
	<-begun
	testenv.Ask(t, b.nodes["A"], control.Ping{
		Addr: netip.MustParseAddr("10.0.0.2"), Count: 3, Size: 56, Interval: time.Millisecond,
	})
	<-came // while the capture runs
	stop()
	got := <-ended
	require.NoError(t, got.err)
	assert.Equal(t, uint64(6), got.done.Packets)
	assert.Zero(t, got.done.Missed)
	assert.Equal(t, []byte{0x0a, 0x0d, 0x0d, 0x0a}, all.Bytes()[:4], "a section of pcapng")

	_, err := control.Ask(t.Context(), b.client(t, "A"), control.Record{
		Filter: "tcp and", Piece: func([]byte) {},
	})
	require.ErrorIs(t, err, control.ErrUsage)
	assert.ErrorContains(t, err, "the filter is incomplete")
}
