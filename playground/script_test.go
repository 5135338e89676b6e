package playground

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// constant returns a congestion control with a constant window in segments.
func constant(segments string) string {
	return "def on_ack(state, ack):\n    state.cwnd = ack.mss * " + segments +
		"\n\ndef on_loss(state, loss):\n    pass\n"
}

// TestScript checks that the connections of a node can use a file of the node as congestion
// control, and that `cc` makes a running connection adopt a new version of the file.
func TestScript(t *testing.T) {
	t.Parallel()
	cfg := Config{Name: "n.net", Seed: 1, Network: "link A B delay 10ms\n"}
	in(t, cfg, func(t *testing.T, w *World, out *output) {
		do := func(i Input) {
			t.Helper()
			require.NoError(t, w.Do(&i, nil))
			w.Advance(w.Now() + time.Second)
		}
		segments := func() (sid int, n float64) {
			t.Helper()
			list, err := control.Ask(context.Background(), w.hosts[0].node,
				control.Sockets{Info: true})
			require.NoError(t, err)
			require.Len(t, list, 1, "%s", out.of("A"))
			require.Equal(t, "cc.star", list[0].Info.CongestionControl)
			return list[0].SID, float64(list[0].Info.SndCwnd) / float64(list[0].Info.SndMSS)
		}
		do(Input{Node: "A", File: "cc.star", Data: []byte(constant("3"))})
		do(Input{Node: "A", Line: "set tcp.congestion cc.star"})
		assert.Contains(t, out.of("A"), "cc.star")
		do(Input{Node: "A", File: "big", Data: make([]byte, 8<<20)})
		do(Input{Node: "B", Line: "recvfile got 5000"})
		do(Input{Node: "A", Line: "sendfile big 10.0.0.2 5000"})
		sid, n := segments()
		assert.InDelta(t, 3, n, 0, "segments")
		do(Input{Node: "A", File: "cc.star", Data: []byte(constant("7"))})
		_, n = segments()
		assert.InDelta(t, 3, n, 0, "the file has changed, the connection has not")
		again := func() float64 {
			_, err := control.Ask(context.Background(), w.hosts[0].node,
				control.Congestion{SID: sid, Name: "cc.star"})
			require.NoError(t, err)
			w.Advance(w.Now() + time.Second)
			_, n := segments()
			return n
		}
		assert.InDelta(t, 7, again(), 0, "after `cc`")
		idle := "def on_ack(state, ack):\n    pass\n\ndef on_loss(state, loss):\n    pass\n"
		do(Input{Node: "A", File: "cc.star", Data: []byte(idle)})
		assert.InDelta(t, 7, again(), 0, "the new script starts with the window of the old one")
		threshold := func(init string) int {
			text := "def init(state, conn):\n    state.ssthresh = " + init + "\n\n" + idle
			do(Input{Node: "A", File: "cc.star", Data: []byte(text)})
			again()
			list, err := control.Ask(context.Background(), w.hosts[0].node,
				control.Sockets{Info: true})
			require.NoError(t, err)
			return list[0].Info.SndSsthresh
		}
		assert.Equal(t, 123_456, threshold("123456"))
		assert.Equal(t, 123_457, threshold("conn.ssthresh + 1"), "the threshold of the old one")
	})
}

// TestScriptErrors checks that errors of a script are reported: those in the file at once, and
// those of a connection when they occur.
func TestScriptErrors(t *testing.T) {
	t.Parallel()
	in(t, lossy(1), func(t *testing.T, w *World, out *output) {
		for i := range transfer {
			if i == 2 {
				break
			}
			require.NoError(t, w.Replay(&transfer[i]))
		}
		set := func(name, text string) string {
			if text != "" {
				require.NoError(t, w.Do(&Input{Node: "A", File: name, Data: []byte(text)}, nil))
			}
			before := len(out.of("A"))
			require.NoError(t, w.Do(&Input{Node: "A", Line: "set tcp.congestion " + name}, nil))
			w.Advance(w.Now() + time.Millisecond)
			return out.of("A")[before:]
		}
		assert.Contains(t, set("none.star", ""), "none.star: no such file")
		assert.Contains(t, set("a.star", "def on_ack(state, ack:\n"), "a.star:1:")
		assert.Contains(t, set("a.star", "def on_ack(state, ack):\n    pass\n"), "no function on_loss")
		bad := strings.Replace(constant("2"), "* 2", "/ (ack.mss - ack.mss)", 1)
		assert.NotContains(t, set("a.star", bad), "a.star:")
		require.NoError(t, w.Do(&Input{Node: "A", Line: transfer[2].Line}, nil))
		w.Advance(w.Now() + time.Minute)
		assert.Regexp(t, `At \d+\.\d{3} s: a\.star:2:`, out.of("A"))
		assert.Equal(t, []string{"a.star"}, w.Complete("A", "set tcp.congestion a"))
		assert.Equal(t, []string{"a.star"}, w.Complete("A", "cc 1 a"))
		assert.Contains(t, out.of("A"), "Correct the file and set it again.")
	})
	err := Check("a.star", "x = y\nz = w\n")
	var all diagnostic.Errors
	require.ErrorAs(t, err, &all)
	require.Len(t, all, 2)
	assert.Equal(t, 2, all[1].Line)
	require.NoError(t, Check("a.star", constant("2")))
}
