package node

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

func TestWhatANodeCannotDoYetIsRefusedWithItsPlace(t *testing.T) {
	cfg, err := lnx.Parse("x.lnx", []byte(`interface if0 10.0.0.1/24 127.0.0.1:5920
routing rip2
`))
	require.NoError(t, err)
	_, err = Open(Config{LNX: cfg})
	require.Error(t, err)
	assert.ErrorContains(t, err, "x.lnx: routing rip2")
}
