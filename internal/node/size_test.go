package node

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// One of Go's size classes ends at 320 bytes. A few bytes more cost 32 for each connection.
func TestAConnectionFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Conn{}), uintptr(320))
}
