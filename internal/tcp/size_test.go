package tcp

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// What has pointers and is larger than 512 bytes is allocated with 8 more in front of it, and of
// Go's size classes one ends at 1024: a few bytes beyond it are 128 a connection. What few
// connections have belongs in trouble, what only busy ones need in work.
func TestAConnectionFitsItsSizeClass(t *testing.T) {
	t.Log(unsafe.Sizeof(Conn{}), unsafe.Sizeof(recovery{}), unsafe.Sizeof(rtt{}), unsafe.Sizeof(rested{}), unsafe.Sizeof(sender{}), unsafe.Sizeof(receiver{}), unsafe.Sizeof(pathMTU{}), unsafe.Sizeof(links{}), unsafe.Sizeof(stats{}), unsafe.Sizeof(limited{}), unsafe.Sizeof(stamps{}), unsafe.Sizeof(wishes{}))
	assert.LessOrEqual(t, unsafe.Sizeof(Conn{}), uintptr(1024-8))
}
