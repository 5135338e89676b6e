package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

var _ control.Operator = (*Client)(nil)

var (
	addrA = netip.MustParseAddr("10.0.0.1")
	addrB = netip.MustParseAddr("10.0.0.2")
)

// TestAClientIsAnOperator checks that a client's answers equal the node's, including their types.
func TestAClientIsAnOperator(t *testing.T) {
	b := newBed(t)
	c := b.client(t, "A")
	for _, k := range control.Kinds() {
		if k.Resource == "" {
			continue
		}
		request := reflect.Zero(k.Request).Interface()
		direct, err := b.nodes["A"].Do(t.Context(), request)
		require.NoError(t, err)
		remote, err := c.Do(t.Context(), request)
		require.NoError(t, err, k.Name)
		assert.IsType(t, direct, remote, k.Name)
		switch k.Name {
		case "rip", "neighbors": // these answers contain times
		case "interfaces":
			assert.Len(t, remote, 1)
		default:
			assert.Equal(t, fmt.Sprint(direct), fmt.Sprint(remote), k.Name)
		}
	}
	p, err := c.Process(t.Context())
	require.NoError(t, err)
	assert.Equal(t, os.Getpid(), p.PID)
	assert.Equal(t, []string{"A", "B"}, p.Nodes)
}

// TestErrorsSurviveHTTP checks that errors keep their type and text over HTTP.
func TestErrorsSurviveHTTP(t *testing.T) {
	b := newBed(t)
	c := b.client(t, "A")
	for _, request := range []any{
		control.Window{SID: 4},
		control.SetLink{Iface: "x"},
		control.PcapStop{},
		control.SetLoss{Percent: 200},
		control.Set{Key: "no.such"},
		control.SendFile{Path: "none", Addr: addrB, Port: 1},
		control.Ping{Addr: netip.MustParseAddr("10.77.0.1"), Count: 1},
		control.Connect{Addr: addrB, Port: 1},
	} {
		_, direct := b.nodes["A"].Do(t.Context(), request)
		require.Error(t, direct)
		_, remote := c.Do(t.Context(), request)
		require.Error(t, remote, "%T", request)
		assert.Equal(t, direct.Error(), remote.Error())
		found := false
		for _, s := range control.Sentinels() {
			if found = errors.Is(direct, s); found {
				require.ErrorIs(t, remote, s)
				break
			}
		}
		assert.True(t, found || errors.Is(direct, os.ErrNotExist), "%v", direct)
	}
	_, err := b.client(t, "Q").Do(t.Context(), control.About{})
	require.ErrorContains(t, err, "no such node; the nodes are A, B")
	_, err = c.Do(t.Context(), 42)
	require.ErrorIs(t, err, control.ErrUnsupported)
}

// TestStoppedPingReturnsItsResult checks that a stopped ping returns its result so far, as it
// does without HTTP.
func TestStoppedPingReturnsItsResult(t *testing.T) {
	b := newBed(t)
	ctx, stop := context.WithCancel(t.Context())
	begun := false
	answered := 0
	result, err := control.Ask(ctx, control.Operator(b.client(t, "A")), control.Ping{
		Addr: addrB, Interval: 10 * time.Millisecond,
		Begun: func() { begun = true },
		Each: func(r control.Reply) {
			if answered++; answered == 3 {
				stop()
			}
		},
	})
	require.NoError(t, err)
	assert.True(t, begun)
	assert.GreaterOrEqual(t, result.Received, 3)
	_, _, body := b.do(t, "GET", "/v1/nodes/A/running", "", "")
	assert.Equal(t, "[]\n", string(body))
}

// TestCanceledRequest checks that canceling a request also cancels it at the node.
func TestCanceledRequest(t *testing.T) {
	waits := make(chan struct{})
	ended := make(chan error, 1)
	b := &bed{nodes: map[string]control.Operator{"A": asked(
		func(ctx context.Context, _ any) (any, error) {
			close(waits)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		})}}
	b.serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-waits; cancel() }()
	_, err := b.client(t, "A").Do(ctx, control.Read{SID: 1, N: 1})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, <-ended, context.Canceled)
}

// asked is an operator whose Do calls this function.
type asked func(ctx context.Context, req any) (any, error)

func (o asked) Do(ctx context.Context, req any) (any, error) { return o(ctx, req) }
func (asked) Watch(func(control.Event)) (stop func())        { return func() {} }

// TestCommandThatPanics checks that the server survives a command that panics.
func TestCommandThatPanics(t *testing.T) {
	b := &bed{nodes: map[string]control.Operator{"A": asked(
		func(context.Context, any) (any, error) { panic("BUG: here") })}}
	b.serve(t)
	for _, accept := range []string{"", typeLines} {
		_, _, body := b.do(t, "POST", "/v1/nodes/A/commands/routes", accept, "")
		assert.Contains(t, string(body), "internal error (the node continues): BUG: here")
	}
	_, _, body := b.do(t, "GET", "/v1/nodes/A", "", "")
	assert.Contains(t, string(body), "/v1/problems/internal-error")
	_, _, body = b.do(t, "GET", "/v1/process", "", "")
	assert.Contains(t, string(body), `"pid"`)
}

// TestPathsAreRelativeToTheClient checks that a relative path is relative to the client's working
// directory.
func TestPathsAreRelativeToTheClient(t *testing.T) {
	t.Chdir(t.TempDir())
	b := newBed(t)
	require.NoError(t, os.WriteFile("sent", []byte("some text"), 0o600))
	var wg sync.WaitGroup
	listening := make(chan struct{})
	wg.Go(func() {
		once := sync.OnceFunc(func() { close(listening) })
		defer once()
		got, err := control.Ask(t.Context(), control.Operator(b.client(t, "B")), control.RecvFile{
			Path: "received", Port: 6000, Progress: func(control.Progress) { once() },
		})
		assert.NoError(t, err)
		assert.Equal(t, int64(9), got.Bytes)
	})
	<-listening
	told := 0
	sent := testenv.Ask(t, control.Operator(b.client(t, "A")), control.SendFile{
		Path: "sent", Addr: addrB, Port: 6000, Progress: func(control.Progress) { told++ },
	})
	assert.Positive(t, told)
	assert.Equal(t, int64(9), sent.Bytes)
	wg.Wait()
	text, err := os.ReadFile("received")
	require.NoError(t, err)
	assert.Equal(t, "some text", string(text))

	t.Log("# below the node's folder from anywhere, and outside of it never")
	folder, err := os.Getwd()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir("sub", 0o700))
	t.Chdir("sub")
	op := control.Operator(b.client(t, "A"))
	for _, name := range []string{"../x.pcapng", filepath.Join(folder, "sub", "y.pcapng")} {
		testenv.Ask(t, op, control.StartCapture{File: name})
		testenv.Ask(t, op, control.StopCapture{})
		require.FileExists(t, name)
	}
	_, err = op.Do(t.Context(), control.StartCapture{File: "../../x"})
	require.ErrorIs(t, err, control.ErrUsage)
	require.ErrorContains(t, err, "--files DIR")
}

// TestEvents checks that every watcher receives the events, through a client and as a stream.
func TestEvents(t *testing.T) {
	b := newBed(t)
	d := describe(t, openAPIDocument)
	told := make(chan control.Event, 16)
	c := b.client(t, "B")
	defer c.Watch(func(e control.Event) { told <- e })()
	lines := make(chan []byte, 16)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://localhost/v1/nodes/B/events", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", typeLines)
	resp, err := b.http.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	go func() {
		text := make([]byte, 4096)
		n, _ := resp.Body.Read(text)
		lines <- text[:n]
	}()
	testenv.Ask(t, b.nodes["A"], control.Request[control.TestSent](
		control.SendTest{Addr: addrB, Text: "wave"}))
	got, ok := (<-told).(control.TestReceived)
	require.True(t, ok)
	assert.Equal(t, "wave", got.Text)
	assert.Equal(t, addrA, got.Src)
	line := <-lines
	assert.Contains(t, string(line), `{"event":"test","data":{"src":"10.0.0.1"`)
	d.holds(t, "GET", "/v1/nodes/B/events", 200, typeLines, line)
}

// TestEveryEventIsDecoded checks that every event is decoded to its original value.
func TestEveryEventIsDecoded(t *testing.T) {
	for _, e := range control.Events() {
		text, err := document(e)
		require.NoError(t, err)
		assert.IsType(t, e, eventFrom(e.Event(), string(text)))
	}
	assert.Nil(t, eventFrom("newer", "{}"))
	assert.Nil(t, eventFrom("test", "{"))
}

// TestStoppedNode checks that requests to a node that does not run fail with ErrGone, and that Lost
// reports that a node cannot be reached or stops.
func TestStoppedNode(t *testing.T) {
	socket := filepath.Join(shortFolder(t), "s")
	c := NewClient(Endpoint{Socket: socket}, "A")
	_, err := c.Do(t.Context(), control.About{})
	require.ErrorIs(t, err, ErrGone)
	assert.Regexp(t, "^A: the node does not answer: .* at "+regexp.QuoteMeta(socket)+"$", err.Error())
	_, err = NewClient(Endpoint{Socket: socket}, "").Process(t.Context())
	require.ErrorContains(t, err, socket+": the node does not answer: ")
	c.Watch(func(control.Event) {})()
	<-c.Lost()

	l, err := ListenUnix(t.Context(), socket)
	require.NoError(t, err)
	s := New(Config{Nodes: map[string]control.Operator{"A": asked(nil)}})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	defer c.Watch(func(control.Event) {})()
	s.Close()
	<-c.Lost()
	require.NoError(t, <-ended)
	c.Close()
}

// TestNodesServedTogether checks that a server forwards requests for nodes behind other servers.
func TestNodesServedTogether(t *testing.T) {
	b := newBed(t)
	gone := NewClient(Endpoint{Socket: filepath.Join(shortFolder(t), "none"), Away: true}, "C")
	all := &bed{nodes: map[string]control.Operator{
		"A": b.client(t, "A"), "B": b.client(t, "B"), "C": gone,
	}}
	all.serve(t)
	_, _, body := all.do(t, "GET", "/v1/nodes", "", "")
	assert.Contains(t, string(body), `"name":"B"`)
	assert.NotContains(t, string(body), `"name":"C"`, "it is not there")
	status, _, body := all.do(t, "GET", "/v1/nodes/C/routes", "", "")
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Contains(t, string(body), "/v1/problems/node-gone")
	assert.Contains(t, string(body), "C: the node does not answer: its host is unreachable: ")
	status, _, _ = all.do(t, "GET", "/v1/nodes/C/events", "", "")
	assert.Equal(t, http.StatusBadGateway, status)
	_, err := all.client(t, "C").Do(t.Context(), control.Routes{})
	require.ErrorIs(t, err, ErrGone)
	_, err = all.client(t, "A").Do(t.Context(), control.Window{SID: 3})
	require.ErrorIs(t, err, control.ErrNoSuchSocket, "through both")
	result := testenv.Ask(t, control.Operator(all.client(t, "A")), control.Ping{
		Addr: addrB, Count: 2, Interval: time.Millisecond,
	})
	assert.Equal(t, 2, result.Received)

	heard := all.client(t, "B")
	told := make(chan control.Event, 16)
	defer heard.Watch(func(e control.Event) { told <- e })()
	_, err = all.client(t, "A").Do(t.Context(), control.SendTest{Addr: addrB, Text: "on"})
	require.NoError(t, err)
	assert.IsType(t, control.TestReceived{}, <-told)
	b.server.Close() // closes the nodes' own server
	<-heard.Lost()
}
