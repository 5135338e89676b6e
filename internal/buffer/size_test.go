package buffer

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// Every connection has two rings, even an idle one. A ring that exceeds Go's size class of 96 bytes
// uses 16 bytes more, and an idle connection may use 2048 bytes in all.
func TestRingFitsItsSizeClass(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 {
		assert.LessOrEqual(t, unsafe.Sizeof(Ring{}), uintptr(96))
	}
}
