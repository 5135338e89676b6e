package tcp

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// Go adds an 8-byte header to a value of more than 512 bytes that contains pointers, and one of its
// size classes ends at 1024: a larger Conn takes 128 bytes more. Fields that few connections need
// belong in lasting or behind a pointer. Fields that only busy ones need belong in outstanding.
func TestConnectionFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Conn{}), uintptr(1024-8))
}
