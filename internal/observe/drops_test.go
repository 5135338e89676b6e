package observe_test

import (
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

// lossy makes a node's link lose some of the packets that the node sends.
func lossy(t *testing.T, n *operator.Node, words string) {
	t.Helper()
	testenv.Ask(t, n, control.Impair{Iface: "if0", Way: control.WayOut, Words: words})
}

// lost returns how many packets the link of a node has lost.
func lost(t *testing.T, n *operator.Node) int {
	t.Helper()
	for _, i := range testenv.Ask(t, n, control.Impairments{Iface: "if0"}) {
		if i.Way == control.WayOut {
			return int(i.Lost)
		}
	}
	require.Fail(t, "nothing is impaired")
	return 0
}

// move sends bytes over a connection until all are acknowledged, so that no data is in flight
// afterwards.
func move(t *testing.T, client, server *node.Conn, size int) {
	t.Helper()
	wrote := make(chan error, 1)
	go func() {
		_, err := client.Write(make([]byte, size))
		wrote <- err
	}()
	_, err := io.CopyN(io.Discard, server, int64(size))
	require.NoError(t, err)
	require.NoError(t, <-wrote)
	require.Eventually(t, func() bool {
		s, err := client.Socket()
		return err == nil && s.SendQ == 0
	}, time.Minute, time.Millisecond)
}

// TestTraceOfDrops lists exactly the dropped segments that match the filter. It lists neither
// segments that arrive nor other lost packets.
func TestTraceOfDrops(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	client, server := connect(t, a, b)
	port := netip.MustParseAddrPort(client.LocalAddr().String()).Port()
	lossy(t, a, "loss 10% seed 7")
	r := control.Trace{Filter: fmt.Sprintf("tcp port 80 and port %d", port), Drops: true}
	before, during := 0, 0
	var done control.Traced
	list := tracing(t, a, r, &done, func() {
		was := lost(t, a)
		for before = was; before == was; before = lost(t, a) {
			pings(t, a, 20, 100)
		}
		move(t, client, server, 2_000_000)
		during = lost(t, a)
	})
	require.Greater(t, during-before, 50, "there is something to count")
	require.Equal(t, during-before, len(list)) //nolint:testifylint // Len would print them all
	assert.EqualValues(t, during-before, done.Segments)
	assert.Zero(t, done.Missed)
	for _, s := range list {
		assert.Equal(t, "lost by the link", s.Drop)
		assert.True(t, s.Sent)
		assert.Equal(t, client.LocalAddr().String(), s.Left)
		assert.Positive(t, s.Length)
	}

	r.Count = 3
	list = traced(t, a, r, func() { move(t, client, server, 2_000_000) })
	assert.Len(t, list, 3, "drops count, and not what passes")
	lossy(t, a, "off")
}

// A slow reader of a trace misses segments. The next traced segment and the response count them.
// The connection does not wait for the reader.
func TestSlowReaderOfATrace(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	client, server := connect(t, a, b)
	r := control.Trace{SID: client.SID()}
	goOn, behind := make(chan struct{}), make(chan struct{})
	told, gaps := uint64(0), uint64(0)
	r.Segment = func(s control.TracedSegment) {
		if told == 0 {
			<-goOn // continue only when more packets have arrived than may wait
		}
		if s.Missed > 0 && gaps == 0 {
			close(behind)
		}
		told++
		gaps += s.Missed
	}
	before := packets(t, a)
	var done control.Traced
	tracing(t, a, r, &done, func() {
		for packets(t, a) < before+40_000 {
			move(t, client, server, 5_000_000)
		}
		close(goOn)
		// repeats until the reader has caught up and has a segment after the gap
		for range 100_000 {
			move(t, client, server, 1)
			select {
			case <-behind:
				return
			default:
			}
		}
	})
	assert.Positive(t, done.Missed)
	assert.Positive(t, gaps)
	assert.LessOrEqual(t, gaps, done.Missed, "the last gap may have no segment after it")
	assert.Equal(t, told, done.Segments)
	assert.Equal(t, packets(t, a)-before, int(told+done.Missed), "each is traced or counted")
}

// packets returns how many packets have passed a node's link in both directions.
func packets(t *testing.T, n *operator.Node) int {
	t.Helper()
	faces := testenv.Ask(t, n, control.Interfaces{})
	return int(faces[0].In.Packets + faces[0].Out.Packets)
}
