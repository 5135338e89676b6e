package main

import (
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
)

// docs/lab.md lists exactly the experiments with expectations. CI runs them and checks the results
// on the page.
func TestPageOfExperimentsIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/lab.md")
	require.NoError(t, err)
	var there, want []string
	for _, m := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllSubmatch(page, -1) {
		there = append(there, string(m[1]))
	}
	for _, name := range lab.PresetNames() {
		s, err := lab.Load(lab.Request{Experiment: name})
		if errors.Is(err, lab.ErrRealOnly) {
			continue
		}
		require.NoError(t, err, name)
		if len(s.Cells[0].Expect) > 0 {
			want = append(want, name)
		}
	}
	assert.Equal(t, want, there, "make lab writes it")
	assert.NotContains(t, string(page), "**fails**")
}

func TestMarkdownIsLiteral(t *testing.T) {
	assert.Equal(t, `a \| b\_c &lt;d e`, markdownText("a | b_c <d\ne"))
}
