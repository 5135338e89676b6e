package netem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every keyword has a usage, which begins with the keyword.
func TestUsage(t *testing.T) {
	for _, k := range keywords {
		assert.True(t, strings.HasPrefix(k.usage, k.name), k.usage)
	}
}
