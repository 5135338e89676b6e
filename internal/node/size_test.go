package node

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// One of Go's size classes ends at 320 bytes: a few beyond it are 32 a connection.
func TestAConnectionFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Conn{}), uintptr(320))
}
