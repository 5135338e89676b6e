package observe_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

// traced starts a trace and returns its segments up to the first one that f sends.
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

// tracing returns the trace while f runs, and how it ended.
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
func TestATraceBeginsWithWhatWasBefore(t *testing.T) {
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
			assert.NotContains(t, s.Marks, control.MarkAgain, i)
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
