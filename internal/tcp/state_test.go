package tcp

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test -update writes it")
	assert.Equal(t, string(want), got)
}

// TestRFC9293_3_3_1_Variables follows the variables of figures 3 and 4 through an exchange.
func TestRFC9293_3_3_1_Variables(t *testing.T) {
	s := opened(t, Config{})
	snd, rcv := &s.c.snd, &s.c.rcv
	sent := func(n uint64) uint64 { return n - snd.iss }
	assert.Equal(t, uint64(1), sent(snd.Una), "the SYN is acknowledged")
	assert.Equal(t, uint64(1), sent(snd.Nxt))
	assert.Equal(t, uint64(1), rcv.nxt-rcv.irs)
	s.write(100)
	s.expect(PSH|ACK, 1, 1, 100)
	assert.Equal(t, uint64(1), sent(snd.Una))
	assert.Equal(t, uint64(101), sent(snd.Nxt))
	s.sendWindow(PSH|ACK, 1, 51, 30, 5000)
	assert.Equal(t, uint64(51), sent(snd.Una))
	assert.Equal(t, uint64(101), sent(snd.Nxt))
	assert.Equal(t, 5000<<snd.scale, snd.wnd)
	assert.Equal(t, rcv.irs+1, snd.wl1, "the segment with the acknowledgment")
	assert.Equal(t, uint64(31), rcv.nxt-rcv.irs)
	assert.Greater(t, rcv.edge, rcv.nxt)
}

// TestRFC9293_3_3_2_States checks figure 5: every state with every event.
func TestRFC9293_3_3_2_States(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s", "")
	for e := range numEvents {
		fmt.Fprintf(&b, "%-13s", eventNames[e])
	}
	b.WriteString("\n")
	for s := range numStates {
		fmt.Fprintf(&b, "%-14s", s)
		for e := range numEvents {
			to, ok := s.next(e)
			name := "-"
			if ok {
				name = to.String()
			}
			fmt.Fprintf(&b, "%-13s", name)
		}
		b.WriteString("\n")
	}
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	golden(t, "states.txt", strings.Join(lines, "\n"))
	assert.Equal(t, "?", numStates.String())
}

func TestImpossibleTransitionPanics(t *testing.T) {
	s := newScript(t, Config{})
	s.connect()
	assert.PanicsWithValue(t, "BUG: tcp: ACK of FIN in SYN-SENT", func() {
		s.c.setState(s.now, evACKOfFIN)
	})
}
