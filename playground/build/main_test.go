package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module0 = "\x00asm\x01\x00\x00\x00" +
	"\x05\x03\x01\x00\x01" + // a memory of one page
	"\x06\x0b\x02\x7f\x01\x41\x07\x0b\x7e\x01\x42\x09\x0b" + // two globals
	"\x07\x05\x01\x01m\x02\x00" + // an export of the memory
	// The data: "a" at 1, "bc" at 4, "d" at 0x2000.
	"\x0b\x16\x03\x00\x41\x01\x0b\x01a\x00\x41\x04\x0b\x02bc\x00\x41\x80\xc0\x00\x0b\x01d"

func TestModule(t *testing.T) {
	t.Parallel()
	list, err := split([]byte(module0))
	require.NoError(t, err)
	assert.Equal(t, module0, string(assemble(list)))
	require.NoError(t, exportGlobals(list))
	require.NoError(t, joinData(list))
	assert.Equal(t, module0[:26]+
		"\x07\x19\x03\x01m\x02\x00\x07global0\x03\x00\x07global1\x03\x01"+
		"\x0b\x13\x02\x00\x41\x01\x0b\x05a\x00\x00bc\x00\x41\x80\xc0\x00\x0b\x01d",
		string(assemble(list)))
}

func TestBrokenModule(t *testing.T) {
	t.Parallel()
	for end := range len(module0) {
		list, err := split([]byte(module0[:end]))
		if err == nil {
			err = joinData(list)
		}
		require.ErrorIs(t, err, errModule, "%d bytes", end)
	}
	for _, data := range []string{"\x01", "\x01\x00\x41\x01\x0b\x02a", "\x01\x01\x01a"} {
		err := joinData([]section{{dataSection, []byte(data)}})
		require.ErrorIs(t, err, errModule, "%q", data)
	}
	require.ErrorIs(t, exportGlobals([]section{{kind: exportSection}}), errModule)
}
