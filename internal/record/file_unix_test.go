//go:build unix

package record_test

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/control/controltest"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/sight"
)

// TestAFileThatTakesNothingHoldsNobodyUp: captures into pipes that nobody reads. The node goes on,
// and what is not written is told.
func TestAFileThatTakesNothingHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		return path
	}
	a, b := operatortest.Two(t)
	controltest.Ask(t, a, control.PcapStart{File: pipe("pcap")})
	controltest.Ask(t, a, control.StartCapture{File: pipe("started")})
	begun, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		_, err := a.Do(ctx, control.Record{File: pipe("awaited"), Begun: func() { close(begun) }})
		assert.ErrorContains(t, err, "it takes nothing any more")
	}()
	<-begun
	t.Log("# more than a pipe and a pile hold passes, and all of it arrives")
	const size = 9 * sight.BacklogBytes / 8
	client, server := connect(t, a, b)
	go func() { _, _ = client.Write(bytes.Repeat([]byte("tide"), size/4)) }()
	_, err := io.CopyN(io.Discard, server, size)
	require.NoError(t, err)
	cancel()
	list := controltest.Ask(t, a, control.Captures{})
	for _, c := range list {
		assert.Positive(t, c.Missed, c.File)
	}
	done := controltest.Ask(t, a, control.StopCapture{})
	assert.Contains(t, done.Problem, "started: capture: flush: it takes nothing any more")
	answer, err := a.Do(t.Context(), control.PcapStop{})
	require.ErrorContains(t, err, "pcap: capture: flush: it takes nothing any more")
	assert.Positive(t, answer.(control.Capture).Missed)
	<-ended
}

// TestANodeClosesBesideAFileThatTakesNothing: what it has for that file is given up.
func TestANodeClosesBesideAFileThatTakesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	a, _ := operatortest.Two(t)
	controltest.Ask(t, a, control.PcapStart{File: path})
	pings(t, a, 200, 1000)
	require.ErrorContains(t, a.Close(), "it takes nothing any more")
}
