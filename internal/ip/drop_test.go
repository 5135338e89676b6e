package ip_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/ip"
)

func TestDropReasonNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for i := range ip.NumDropReasons {
		name := ip.DropReason(i).String()
		assert.NotEmpty(t, name, "reason %d", i)
		assert.NotEqual(t, "unknown reason", name, "reason %d", i)
		assert.False(t, seen[name], "%q twice", name)
		seen[name] = true
	}
	assert.Equal(t, "ttl exceeded", ip.DropTTL.String())
	assert.Equal(t, "unknown reason", ip.DropReason(ip.NumDropReasons).String())
}
