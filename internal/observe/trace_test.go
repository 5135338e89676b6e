package observe_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

// traced starts a trace and returns its segments up to the first segment that f sends.
func traced(t *testing.T, n *operator.Node, r control.Trace, f func()) (list []control.TracedSegment) {
	t.Helper()
	begun, ended := make(chan struct{}), make(chan struct{})
	r.Begun = func() { close(begun) }
	r.Segment = func(s control.TracedSegment) { list = append(list, s) }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer close(ended)
		_, err := n.Do(ctx, r)
		assert.NoError(t, err)
	}()
	<-begun
	f()
	<-ended
	return list
}

// tracing runs f during a trace. It returns the traced segments and how the trace ended.
func tracing(
	t *testing.T, n *operator.Node, r control.Trace, done *control.Traced, f func(),
) (list []control.TracedSegment) {
	t.Helper()
	begun, ended := make(chan struct{}), make(chan struct{})
	r.Begun = func() { close(begun) }
	if r.Segment == nil {
		r.Segment = func(s control.TracedSegment) { list = append(list, s) }
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		answer, err := n.Do(ctx, r)
		assert.NoError(t, err)
		*done, _ = answer.(control.Traced)
	}()
	<-begun
	f()
	cancel()
	<-ended
	return list
}

// A trace begins with the last segments from the connection's recorder, even if no trace ran
// before. Numbers count from the SYN.
func TestTraceBeginsWithRecordedSegments(t *testing.T) {
	t.Parallel()
	a, b := operatortest.Two(t, node.Config{})
	set := func(value string) error {
		_, err := a.Do(t.Context(), control.Set{Key: "tcp.recorder", Value: value})
		return err
	}
	client, server := connect(t, a, b)
	pass := func(size int) {
		_, err := client.Write(bytes.Repeat([]byte("x"), size))
		require.NoError(t, err)
		_, err = io.CopyN(io.Discard, server, int64(size))
		require.NoError(t, err)
	}
	r := control.Trace{SID: client.SID(), Count: 1, Recorded: true}
	pass(50_000)
	live := traced(t, a, r, func() { pass(10) })
	require.Len(t, live, 1, "there is no recorder")
	if live[0].Sent {
		assert.EqualValues(t, 50_001, live[0].Seq)
	} else { // a late acknowledgment of earlier data
		assert.Greater(t, live[0].Ack, uint64(20_000))
	}
	assert.Positive(t, live[0].Window)

	for _, wrong := range []string{"-1", "many", "5000"} {
		require.ErrorIs(t, set(wrong), control.ErrUsage)
	}
	require.NoError(t, set("8"))
	pass(20_000)
	list := traced(t, a, r, func() { pass(10) })
	require.Greater(t, len(list), 8)
	for i, s := range list[:8] {
		assert.LessOrEqual(t, s.Seq, uint64(70_011), i)
		if s.Sent {
			assert.GreaterOrEqual(t, s.Seq, uint64(50_001), i)
			assert.NotContains(t, s.Marks, control.MarkRetransmission, i)
		} else {
			assert.GreaterOrEqual(t, s.Ack, uint64(50_001), i)
		}
		assert.Equal(t, "ESTABLISHED", s.Connection.State)
		if i > 0 {
			assert.False(t, s.At.Before(list[i-1].At))
		}
	}
	r.Recorded = false
	assert.Len(t, traced(t, a, r, func() { pass(10) }), 1)
	require.NoError(t, set("0"))
	r.Recorded = true
	assert.Len(t, traced(t, a, r, func() { pass(10) }), 1, "the recorder is off")
}

// A trace of an IPv6 connection shows the node itself on the left, and the state of its connection,
// also with link-local addresses.
func TestTraceOfIPv6(t *testing.T) {
	t.Parallel()
	p := testenv.FreePorts(t, 2)
	const text = `interface if0 10.0.0.%d/24 127.0.0.1:%d
address if0 2001:db8::%[1]d/64
neighbor 10.0.0.%[3]d at 127.0.0.1:%d via if0
neighbor 2001:db8::%[3]d at 127.0.0.1:%[4]d via if0
`
	file := func(name string, n ...any) *operator.Node {
		return operatortest.Start(t, node.Config{}, testenv.ParseNode(t, name, fmt.Sprintf(text, n...)))
	}
	a, b := file("A", 1, p[0], 2, p[1]), file("B", 2, p[1], 1, p[0])
	for _, tt := range []struct{ left, right, port string }{
		{"[2001:db8::1]:", "[2001:db8::2]:", "80"}, {"[fe80::1%if0]:", "[fe80::2%if0]:", "81"},
	} {
		var client *node.Conn
		r := control.Trace{Filter: "ip6 and syn and port " + tt.port, Count: 3}
		list := traced(t, a, r, func() {
			client, _ = operatortest.Connect(t, a, b, tt.right+tt.port)
		})
		require.Len(t, list, 3)
		for i, want := range []control.TracedSegment{
			{Flags: "S", Sent: true}, {Flags: "S.", Ack: 1}, {Flags: ".", Seq: 1, Ack: 1, Sent: true},
		} {
			s := list[i]
			assert.Equal(t, want, control.TracedSegment{Flags: s.Flags, Seq: s.Seq, Ack: s.Ack, Sent: s.Sent})
			assert.Contains(t, s.Left, tt.left)
			assert.Equal(t, tt.right+tt.port, s.Right)
			assert.Equal(t, client.SID(), s.SID)
		}
		live := traced(t, a, control.Trace{SID: client.SID(), Count: 1}, func() {
			_, err := client.Write([]byte("hello"))
			require.NoError(t, err)
		})
		assert.Equal(t, []any{uint64(1), 5, true}, []any{live[0].Seq, live[0].Length, live[0].Sent})
	}
	name := filepath.Join(t.TempDir(), "x.pcapng")
	testenv.Ask(t, a, control.StartCapture{File: name})
	testenv.Ask(t, a, control.StopCapture{})
	captured, err := os.Open(name)
	require.NoError(t, err)
	defer captured.Close()
	_, if0 := whole(t, captured)
	assert.Equal(t, "10.0.0.1/24 2001:db8::1/64", if0.Description)
}
