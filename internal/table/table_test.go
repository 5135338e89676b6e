package table

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAlignmentOfColumns(t *testing.T) {
	got := New("<flow", "sent")
	got.Row("reno", "7")
	got.Row("µ", "1200")
	assert.Equal(t, "flow  sent\nreno     7\nµ     1200\n", got.String())
	assert.Equal(t, 10, got.Width())
}

// Texts after the cells start in the same column, and the heading spans both.
func TestSuffixesAreAligned(t *testing.T) {
	got := &Table{Columns: []Column{{
		Head: [2]string{"goodput", "Mbit/s"}, Cells: []string{"9.5", "10"},
		Suffixes: []string{" ± 0.25", ""},
	}}}
	assert.Equal(t, "   goodput\n    Mbit/s\n9.5 ± 0.25\n 10\n", got.String())
	assert.Contains(t, got.LaTeX("t", "l"), "9.5 $\\pm$ 0.25 \\\\\n10 \\\\\n")
}

func TestTableWithoutRows(t *testing.T) {
	assert.Empty(t, New("a", "b").String())
	assert.Equal(t, "% title\n", New("a").LaTeX("title", "legend"))
}
