package stack_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/stack"
)

// One of Go's size classes ends at 48 bytes: a larger socket takes 16 bytes more per connection.
func TestSocketFitsItsSizeClass(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(stack.Socket{}), uintptr(48))
}
