package repl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSuggestionsForOtherProgramsCommands checks that the suggested commands exist, and that no
// command of this shell has one of the other programs' names.
func TestSuggestionsForOtherProgramsCommands(t *testing.T) {
	root := open(t, &fake{}, Config{}).tree()
	for word, ours := range kin {
		assert.Nil(t, lookup(root, word), word)
		for name := range strings.SplitSeq(ours, "`, `") {
			c, rest, err := root.Find(strings.Fields(name))
			assert.NoError(t, err, word)
			assert.NotEqual(t, root, c, word)
			assert.True(t, len(rest) == 0 || c.Name() == "show", word)
		}
	}
}
