package congestion

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// What a connection that was busy once keeps while it is idle: a size class of Go's ends at 160.
func TestCubicFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(cubic{}), uintptr(160))
}
