package tcp

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// What has pointers and is larger than 512 bytes is allocated with 8 more in front of it, and of
// Go's size classes one ends at 1024: a few bytes beyond it are 128 a connection. What few
// connections have belongs in lasting or behind a pointer, what only busy ones need in outstanding.
func TestAConnectionFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Conn{}), uintptr(1024-8))
}
