package tcp

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// What has pointers and is larger than 512 bytes is allocated with 8 more in front of it, and of
// Go's size classes one ends at 2048: a few bytes beyond it are 256 a connection.
func TestAConnectionFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Conn{}), uintptr(1280-8))
}
