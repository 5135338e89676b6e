package node

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// A size class of Go ends at 320 bytes. A few bytes more would cost 32 bytes for each connection.
func TestConnectionFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Conn{}), uintptr(320))
}
