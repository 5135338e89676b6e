package emulation

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The messages in docs/EXPERIMENTS.md are valid: all keys exist, and run accepts the messages of
// the process.
func TestMessagesInTheManual(t *testing.T) {
	manual, err := os.ReadFile("../../../docs/EXPERIMENTS.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(manual), "```text\n→ {\"type\":\"start\"")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "\n```")
	text = strings.ReplaceAll("→ {\"type\":\"start\""+text, "\n   ", "")
	text = strings.ReplaceAll(text, ",…}", "}")
	end := &child{name: "the end", index: 1}
	r := &run{
		children: []*child{{}, end}, reports: []*report{{}, {}}, options: &Options{},
		origin: time.Unix(1, 0),
	}
	var sent []string
	for line := range strings.Lines(text) {
		way, line, _ := strings.Cut(strings.TrimSpace(line), " ")
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		switch {
		case way == "←":
			m := new(Message)
			require.NoError(t, d.Decode(m), line)
			require.NoError(t, r.take(childMessage{from: end, Message: m}), line)
		case len(sent) == 0:
			s := new(Start)
			require.NoError(t, d.Decode(s), line)
			assert.Equal(t, Sender, s.Role)
			sent = append(sent, s.Type)
		default:
			var o order
			require.NoError(t, d.Decode(&o), line)
			sent = append(sent, o.Type)
		}
	}
	assert.Equal(t, []string{"start", "go", "stop"}, sent)
	one := r.reports[1]
	assert.True(t, one.ready)
	assert.Equal(t, 1, r.over)
	require.Len(t, one.samples, 1)
	assert.Equal(t, 14480, one.samples[0].Cwnd)
	assert.InDelta(t, 4, one.Values["retransmits"], 0)
	assert.True(t, one.Finished)
}
