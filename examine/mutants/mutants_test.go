package main

import (
	"io"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// The examiner finds each bug in the bug's area. The short variant tests a few of them.
func TestMutants(t *testing.T) {
	only := "checksum over the header|silence|TTL twice|split horizon|FIN without ACK"
	if testenv.Long() {
		only = ""
	}
	missed, err := run(t.Context(), io.Discard, regexp.MustCompile(only))
	require.NoError(t, err)
	assert.Zero(t, missed)
}
