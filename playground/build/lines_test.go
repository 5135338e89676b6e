package main

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// functions returns a table of two functions. Both use the first PC table for the stack's depth.
// The data of the second also uses the first function's table of lines.
func functions() []byte {
	le := binary.LittleEndian
	b := append([]byte("before"), tableMagic...)
	const names, units, files, pcs, list = 72, 75, 79, 84, 93
	for _, v := range []uint64{2, 1, 0, names, units, files, pcs, list} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, "f\x00g"...)               // names
	b = append(b, "unit"...)                 // units
	b = append(b, "a.go\x00"...)             // files
	b = append(b, 0, 2, 1, 0, 4, 3, 0, 6, 0) // PC tables at 1, 4 and 7
	record := func(fields ...uint32) (r []byte) {
		for _, v := range fields {
			r = le.AppendUint32(r, v)
		}
		return r
	}
	b = append(b, record(0, 16, 5, 60)...) // the functions' entries and offsets
	b = append(b, record(0, 0, 0, 0, 1, 4, 7, 0, 0, 30, 0)...)
	return append(b, record(0, 2, 0, 0, 1, 4, 4, 1, 0, 40, 0, 7, 0)...)
}

func TestLines(t *testing.T) {
	t.Parallel()
	b := functions()
	assert.Equal(t, 2, dropLines(b))
	const at = 6 + 72
	assert.Equal(t, make([]byte, 12), b[at:at+12], "the names")
	assert.Equal(t, []byte{0, 2, 1, 0, 0, 0, 0, 6, 0}, b[at+12:at+21], "the PC tables")
	first := b[at+21+16:]
	assert.Equal(t, make([]byte, 8), first[20:28], "files and lines")
	assert.EqualValues(t, 1, first[16], "the stack's depth")
	assert.Zero(t, first[36], "the first line")
}

func TestNoLines(t *testing.T) {
	t.Parallel()
	whole := functions()
	for end := range whole {
		b := append([]byte{}, whole[:end]...)
		dropLines(b) // must not panic
		if end < len(whole)-4 {
			assert.Equal(t, 0, dropLines(b), "%d bytes", end)
			assert.Equal(t, whole[:end], b)
		}
	}
	for i := 6 + 8; i < 6+72; i++ {
		b := append([]byte{}, whole...)
		b[i] = 0xff
		dropLines(b) // must not panic
	}
	assert.Equal(t, 0, dropLines([]byte("no table")))
}

// TestUnknownProgram checks that the build fails if it does not find the data to remove, and that
// it removes nothing from the program of another version of Go.
func TestUnknownProgram(t *testing.T) {
	t.Parallel()
	for version, known := range map[string]bool{
		"go1.26": true, "go1.26.3 X:synctest": true, "go1.27": false, "go1.260": false, "devel": false,
	} {
		b := functions()
		require.NoError(t, shrink(b, "./playground/wasm", version))
		assert.Equal(t, !known, bytes.Equal(functions(), b), version)
	}
	require.ErrorContains(t, shrink(make([]byte, 99), "./playground/wasm", "go1.26"), "its table")
	require.ErrorContains(t, shrink(functions(), labPackage, "go1.26"), "0 fonts with outlines")
}
