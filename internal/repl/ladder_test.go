package repl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	text "github.com/tidepool-net/tidepool/internal/table"
)

// story returns the segments of a connection with a loss, a zero window, an ECN echo and a reset.
func story() []control.TracedSegment {
	var list []control.TracedSegment
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	moment := control.Moment{State: "SYN_SENT", Recovery: "open", SendMSS: 1000}
	add := func(since time.Duration, s control.TracedSegment) {
		at = at.Add(since)
		s.At, s.Since, s.Left, s.Right, s.Connection = at, since, "10.0.0.1:41234", "10.5.0.2:9000", moment
		if !strings.Contains(s.Flags, "S") {
			s.Scale = -1
		}
		list = append(list, s)
	}
	const ms = time.Millisecond
	add(0, control.TracedSegment{Sent: true, Flags: "S", Window: 65535, MSS: 1360, Scale: 7, TSVal: 9})
	add(10*ms, control.TracedSegment{Flags: "S.", Ack: 1, Window: 65535, MSS: 1360, Scale: 7, TSVal: 8})
	moment.State, moment.Cwnd = "ESTABLISHED", 10000
	add(0, control.TracedSegment{Sent: true, Flags: ".", Seq: 1, Ack: 1, Window: 70000})
	for i := range 5 {
		s := control.TracedSegment{
			Sent: true, Flags: ".", Seq: 1 + uint64(i)*1000, Ack: 1, Length: 1000, Window: 70000,
		}
		if i == 2 {
			s.Drop = "lost by the link"
		}
		add(9*time.Microsecond, s)
	}
	add(9*ms, control.TracedSegment{
		Flags: ".", Seq: 1, Ack: 2001, Window: 70000, SACK: []control.Range{{Begin: 3001, End: 5001}},
	})
	add(time.Microsecond, control.TracedSegment{
		Flags: ".", Seq: 1, Ack: 2001, Window: 70000, SACK: []control.Range{{Begin: 3001, End: 5001}},
		Marks: []control.Mark{control.MarkDupAck}, DupAck: 1,
	})
	moment.Recovery, moment.Cwnd, moment.Ssthresh, moment.Pipe = "recovery", 7000, 7000, 3000
	add(20*time.Microsecond, control.TracedSegment{
		Sent: true, Flags: "P.", Seq: 2001, Ack: 1, Length: 1000, Window: 70000,
		Marks: []control.Mark{control.MarkRetransmission},
	})
	moment.Recovery = "open"
	add(10*ms, control.TracedSegment{
		Flags: ".", Seq: 1, Ack: 5001, Marks: []control.Mark{control.MarkZeroWindow},
		Drop: "bad checksum",
	})
	add(1200*ms, control.TracedSegment{
		Sent: true, Flags: ".", Seq: 5001, Ack: 1, Length: 1, Window: 70000,
		Marks: []control.Mark{control.MarkProbe}, Missed: 3,
	})
	add(ms, control.TracedSegment{
		Flags: ".E", Seq: 1, Ack: 5001, Window: 70000, Marks: []control.Mark{control.MarkECE},
	})
	moment.State = "FIN_WAIT_1"
	add(2*ms, control.TracedSegment{Sent: true, Flags: "F.", Seq: 5001, Ack: 1, Window: 70000})
	add(9*ms, control.TracedSegment{Flags: "R", Seq: 1, Window: 0})
	return list
}

// TestLadder compares the drawing of a connection with golden files, at several widths, in ASCII,
// and with and without colors.
func TestLadder(t *testing.T) {
	for name, cfg := range map[string]text.LadderConfig{
		"80": {Width: 80}, "120": {Width: 120}, "ascii": {Width: 80, Plain: true},
		"color": {Width: 80, Color: true}, "each": {Width: 72, Each: true},
	} {
		var b strings.Builder
		l := text.NewLadder(cfg, func(line string) {
			if !cfg.Color {
				assert.LessOrEqual(t, utf8.RuneCountInString(line), cfg.Width, line)
			}
			b.WriteString(line + "\n")
		})
		for _, s := range story() {
			l.Add(&s)
		}
		l.Flush()
		assert.False(t, l.Waiting())
		path := filepath.Join("testdata", "ladder-"+name+".txt")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), b.String(), "%s: go test ./internal/repl -update", name)
		if cfg.Plain {
			assert.Equal(t, len(b.String()), utf8.RuneCountInString(b.String()))
		}
	}
}
