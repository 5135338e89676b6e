package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The demo names the three kinds of arrivals of founding document 001.
func TestDemoArrivals(t *testing.T) {
	stdout, stderr, err := runDemo(t, "arrivals")
	require.NoError(t, err, stderr)
	for _, line := range []string{
		"SeqNo 706860, 1360 bytes\n           inside the window: queued, because 1360 bytes before it",
		"SeqNo 771500, 1360 bytes\n           beyond the window: dropped, because the window ends at 771035",
		"SeqNo 705500, 1360 bytes\n           expected next: it begins at RCV.NXT",
		"RCV.NXT 708220, window 708220:771035; 2720 bytes to read; no data held",
		"bytes 0 to 6799 of the stream, each correct",
		"the peer has closed: CLOSE-WAIT",
	} {
		assert.Contains(t, stdout, line)
	}
	again, _, err := runDemo(t, "arrivals")
	require.NoError(t, err)
	assert.Equal(t, stdout, again, "virtual time")

	stdout, _, err = runDemo(t, "arrivals", "--window", "4000", "1000+500", "0+1000", "read")
	require.NoError(t, err)
	assert.Contains(t, stdout, "with a window of 4000 bytes")
	assert.Equal(t, 2, strings.Count(stdout, "SeqNo"))

	for _, bad := range [][]string{{"0-5"}, {"--window", "1"}, {"--window", "70000"}} {
		_, stderr, err := runDemo(t, append([]string{"arrivals"}, bad...)...)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, 2, exit.ExitCode(), stderr)
	}
}
