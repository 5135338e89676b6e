package lab_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

func TestPresets(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range lab.PresetGroups() {
		assert.NotEmpty(t, g.Presets, g.Folder)
		for _, p := range g.Presets {
			assert.False(t, seen[p.Name], "%s: two presets have this name", p.Name)
			seen[p.Name] = true
			assert.LessOrEqual(t, utf8.RuneCountInString(p.About), 75, p.Name)
			f, err := plan.Parse(p.Name+".yaml", p.Text)
			require.NoError(t, err)
			cells, err := f.Cells()
			require.NoError(t, err)
			assert.Equal(t, p.Name, cells[0].Name)
			assert.Equal(t, p.About, cells[0].About, "the description is one line")
			assert.NotEmpty(t, p.About, p.Name)
			for _, e := range cells[0].Expect {
				assert.NotEmpty(t, e.Source, "%s:%d: an expectation without a source", p.Name, e.Line)
			}
		}
	}
	p, ok := lab.FindPreset("tahoe-low")
	require.True(t, ok)
	assert.Equal(t, "tahoe-low", p.Name)
	_, ok = lab.FindPreset("tahoe")
	assert.False(t, ok)
	assert.Len(t, lab.PresetNames(), len(seen))
}
