package stack_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/stack"
)

// One of Go's size classes ends at 48 bytes: a few beyond it are 16 a connection.
func TestASocketFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(stack.Socket{}), uintptr(48))
}
