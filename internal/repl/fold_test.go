package repl

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// wide returns a function for the width of a terminal that is never resized.
func wide(n int) func() int { return func() int { return n } }

// On a terminal of 80 columns, lines are broken between words.
func TestFold(t *testing.T) {
	long := strings.Repeat("seven", 20)
	for text, want := range map[string]string{
		"one two three\n":                          "one two three\n",
		"one two three four five six\nand seven\n": "one two three four\n  five six\nand seven\n",
		"one " + long:                              "one\n  " + long,
		long:                                       long,
	} {
		assert.Equal(t, want, fold(20, text))
		assert.Equal(t, text, fold(0, text))
	}
}

func TestUsageLinesAreBrokenBetweenFlags(t *testing.T) {
	assert.Equal(t, "usage: up IF", usageLines(textWidth, "up IF"))
	flags := strings.Repeat(" [-w SECONDS]", 10)
	for line := range strings.SplitSeq(usageLines(textWidth, "ping ADDR"+flags), "\n") {
		assert.LessOrEqual(t, len(line), textWidth)
		assert.Equal(t, strings.Count(line, "["), strings.Count(line, "]"), line)
	}
}

// The tables of drops and of `help` fit 80 columns.
func TestTablesFitTheTerminal(t *testing.T) {
	c := control.Counters{Drops: []control.Drop{
		{Reason: "fragment not a multiple of 8", Packets: 4_000_000_000},
	}}
	s := open(t, &fake{}, Config{})
	require.NoError(t, s.Execute(t.Context(), "help"))
	for line := range strings.SplitSeq(printCounters("RX", c, 2)+s.out.String(), "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
	}
}

func TestDurationsAreFormatted(t *testing.T) {
	for seconds, want := range map[float64]string{
		0.0015: "1.5 ms", 0.999: "999 ms", 0.9996: "1.000 s", 1.37: "1.370 s",
	} {
		assert.Equal(t, want, took(seconds))
	}
}
