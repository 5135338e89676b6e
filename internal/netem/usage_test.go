package netem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every keyword has its usage, which begins with it.
func TestUsage(t *testing.T) {
	for _, k := range keywords {
		assert.True(t, strings.HasPrefix(k.usage, k.name), k.usage)
	}
}
