package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExportGlobals(t *testing.T) {
	t.Parallel()
	module := []byte("\x00asm\x01\x00\x00\x00" +
		"\x05\x03\x01\x00\x01" + // a memory of one page
		"\x06\x0b\x02\x7f\x01\x41\x07\x0b\x7e\x01\x42\x09\x0b" + // two globals
		"\x07\x05\x01\x01m\x02\x00") // an export of the memory
	got, err := exportGlobals(module)
	require.NoError(t, err)
	assert.Equal(t, string(module[:26])+
		"\x07\x19\x03\x01m\x02\x00\x07global0\x03\x00\x07global1\x03\x01", string(got))
	for end := range len(module) - 1 {
		_, err := exportGlobals(module[:end])
		require.ErrorIs(t, err, errModule, "%d bytes", end)
	}
}
