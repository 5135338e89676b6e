package result_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// These expressions match the subset of xplot's language that the files use: a line of coordinate
// types, then commands. Some commands have a text on the next line.
var (
	xplotTypes = regexp.MustCompile(`^timeval (unsigned|double)$`)
	xplotTitle = regexp.MustCompile(`^(title|xlabel|ylabel)$`)
	xplotColor = regexp.MustCompile(`^(white|green|red|blue|yellow|purple|orange|magenta|pink)$`)
	xplotPoint = regexp.MustCompile(`^(darrow|uarrow|utick|dtick) [0-9]+\.[0-9]{6} [0-9]+$`)
	xplotLine  = regexp.MustCompile(`^line( [0-9]+\.[0-9]{6} [0-9]+){2}$`)
	xplotText  = regexp.MustCompile(`^[abclr]text [0-9]+\.[0-9]{6} [0-9]+$`)
)

// drawn counts the commands of an xplot file, by color and command.
func drawn(t *testing.T, text string) map[string]int {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	require.Regexp(t, xplotTypes, lines[0])
	count, color := map[string]int{}, ""
	for i := 1; i < len(lines); i++ {
		switch line := lines[i]; {
		case xplotTitle.MatchString(line), xplotText.MatchString(line):
			i++
			require.Less(t, i, len(lines), "a text is missing")
			count[color+" "+strings.Fields(line)[0]]++
		case xplotColor.MatchString(line):
			color = line
		case xplotPoint.MatchString(line), xplotLine.MatchString(line):
			count[color+" "+strings.Fields(line)[0]]++
		default:
			require.Equal(t, "go", line)
			require.Equal(t, len(lines)-1, i, "a line after go")
		}
	}
	return count
}

func TestXplot(t *testing.T) {
	const ms = time.Millisecond
	f := &result.FlowRecord{Segments: []result.Segment{
		{At: 0, Seq: 0, Len: 1000},
		{At: ms / 2, Seq: 1000, Len: 1000},
		{At: 10 * ms, Received: true, Ack: 1000, Window: 5000},
		{At: 11 * ms, Received: true, Ack: 1000, Window: 5000, SACK: [][2]uint64{{2000, 3000}}},
		{At: 12*ms + 345, Seq: 1000, Len: 1000, Again: true},
		{At: 1500 * ms, Received: true, Ack: 3000, Window: 3000},
		{At: 1600 * ms, Seq: 3000}, // a segment without data
	}}
	text := string(result.Xplot("reno\nof two", f))
	assert.Equal(t, map[string]int{
		" title": 1, " xlabel": 1, " ylabel": 1,
		"white darrow": 2, "white uarrow": 2, "white line": 2,
		"red darrow": 1, "red uarrow": 1, "red line": 1, "red atext": 1,
		"green line": 3, "green utick": 1, "yellow line": 2, "purple line": 1,
	}, drawn(t, text))
	assert.Contains(t, text, "title\nreno of two\n")
	assert.Contains(t, text, "line 0.012000 1000 0.012000 2000\natext 0.012000 2000\nR\n")
	assert.Contains(t, text, "line 0.011000 1000 1.500000 1000\nline 1.500000 1000 1.500000 3000\n")
	assert.Contains(t, text, "purple\nline 0.011000 2000 0.011000 3000\n")

	f.Segments[0].Seq = 1 << 33 // does not fit in 32 bits
	assert.Contains(t, string(result.Xplot("x", f)), "timeval double\n")
	drawn(t, string(result.Xplot("x", f)))
	assert.Nil(t, result.Xplot("x", &result.FlowRecord{}))
}
