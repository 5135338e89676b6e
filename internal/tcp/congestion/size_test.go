package congestion

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// A connection that was busy keeps its controller while it is idle. One of Go's size classes ends
// at 160.
func TestCubicFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(cubic{}), uintptr(160))
}
