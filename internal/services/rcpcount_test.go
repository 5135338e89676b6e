package services_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/services"
)

// longSilence is the timeout of the tests' connections. It is long because the machine may be busy.
var longSilence = control.RCPOptions{Timeout: 20 * time.Second}

// The document's echo server and client run over a router that loses a fifth of the packets. All
// data comes back. A data packet takes at least 1/(1-p) transmissions on average; the share p of
// them, and those caused by lost acknowledgments, are retransmissions.
func TestRCPEchoAndCount(t *testing.T) {
	t.Parallel()
	a, b, c := operatortest.Three(t, node.Config{Seed: 3})
	testenv.Ask(t, b, control.SetLoss{Percent: 20})
	at := testenv.Ask(t, a, control.RCPEcho{Port: 9000, Options: longSilence})
	assert.Equal(t, "0.0.0.0:9000", at.Local.String())
	to := control.RCPCount{Addr: netip.MustParseAddr("10.0.0.1"), Port: 9000, Writes: 100, Options: longSilence}
	got := testenv.Ask(t, c, to)
	assert.Equal(t, 100, got.Writes)
	assert.GreaterOrEqual(t, got.Bytes, int64(100*services.LeastPiece))
	assert.LessOrEqual(t, got.Bytes, int64(100*services.MostPiece))
	assert.Len(t, got.SHA256, 64)
	assert.GreaterOrEqual(t, got.Seconds, .2, "100 rests of 2 ms at the least")
	assert.GreaterOrEqual(t, got.DAT-got.Again, uint64(got.Bytes/256), "packets of 256 bytes")
	assert.Positive(t, got.Again)
	assert.Positive(t, got.ACK)
	assert.Positive(t, got.Received)

	list := testenv.Ask(t, a, control.RCPSockets{})
	require.NotEmpty(t, list)
	assert.Equal(t, "listening", list[0].State)
	assert.Greater(t, list[0].Sent(), uint64(100))
	testenv.Ask(t, a, control.RCPClose{Port: 9000})
	assert.Empty(t, testenv.Ask(t, a, control.RCPSockets{}))
	_, err := a.Do(t.Context(), control.RCPClose{Port: 9000})
	require.ErrorIs(t, err, control.ErrNoSuchSocket)
	_, err = c.Do(t.Context(), to)
	require.ErrorIs(t, err, control.ErrRefused)
}

func TestRCPRequestsThatFail(t *testing.T) {
	a, b := twoNodes(t)
	for _, req := range []any{
		control.RCPCount{Addr: netip.MustParseAddr("10.0.0.2"), Port: 9000, Writes: -1},
		control.RCPCount{Addr: netip.MustParseAddr("10.0.0.2"), Port: 9000, Options: control.RCPOptions{Width: -1}},
		control.RCPCount{Port: 9000},
		control.RCPEcho{Port: 9000, Options: control.RCPOptions{Timeout: time.Millisecond}},
	} {
		_, err := a.Do(t.Context(), req)
		require.ErrorIs(t, err, control.ErrUsage, "%+v", req)
	}
	echo := control.RCPEcho{Port: 9000, Options: longSilence}
	_, err := b.Do(t.Context(), echo)
	require.NoError(t, err)
	_, err = b.Do(t.Context(), echo)
	require.ErrorIs(t, err, control.ErrPortInUse)

	// A request stops when its context ends, even in the middle of its work.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = a.Do(ctx, control.RCPCount{
		Addr: netip.MustParseAddr("10.0.0.2"), Port: 9000, Writes: services.MaxCounted, Options: longSilence,
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	testenv.Ask(t, b, control.RCPClose{Port: 9000})
}
