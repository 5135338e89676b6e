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

var update = flag.Bool("update", false, "write the golden files anew")

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

// TestRFC9293_3_3_2_States holds figure 5: every state, every event.
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
