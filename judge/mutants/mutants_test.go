package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every fault's edit applies to the current file, and its presets exist.
func TestFaultsApply(t *testing.T) {
	t.Chdir("../..")
	names := map[string]bool{}
	for i := range mutants {
		m := &mutants[i]
		assert.False(t, names[m.name], "%s: duplicate name", m.name)
		names[m.name] = true
		text, err := os.ReadFile(m.file)
		require.NoError(t, err, m.name)
		edited, err := m.edit(string(text))
		assert.NoError(t, err, m.name)
		assert.NotEqual(t, string(text), edited, m.name)
		for _, name := range m.presets {
			found, err := filepath.Glob("internal/lab/presets/*/" + name + ".yaml")
			require.NoError(t, err)
			assert.Len(t, found, 1, "%s: preset %s", m.name, name)
		}
	}
	assert.LessOrEqual(t, len(mutants), len(letters))
}

// A fault in the program makes a check fail.
func TestOneFault(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	m := mutants[0]
	overlay, err := m.overlay(dir)
	require.NoError(t, err)
	assert.FileExists(t, overlay)

	rows := rowsOf([]verdict{
		{Experiment: "a", Line: 3, Pass: true},
		{Experiment: "a", Line: 3, Pass: true},
		{Experiment: "a", Line: 4, Pass: true},
	}, 1)
	mark(rows, 0, []verdict{
		{Experiment: "a", Line: 3, Pass: true},
		{Experiment: "a", Line: 3},
		{Experiment: "a", Line: 4, Pass: true},
	})
	require.Len(t, rows, 2)
	assert.Equal(t, "#", string(rows[0].marks))
	assert.Equal(t, ".", string(rows[1].marks))
	assert.ErrorContains(t, write(t.Output(), []mutant{m}, rows), "1 checks hold under all faults")
}
