package buffer

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// Each connection has two rings, also one that is idle: a word beyond Go's size class of 96 costs
// it 32 bytes of the 2048 that it may take.
func TestRingFitsItsSizeClass(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 {
		assert.LessOrEqual(t, unsafe.Sizeof(Ring{}), uintptr(96))
	}
}
