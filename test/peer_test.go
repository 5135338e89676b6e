package e2e_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/test/internal/peer"
)

var (
	ours   = netip.MustParseAddr("10.0.0.1")
	theirs = netip.MustParseAddr("10.0.0.2")
)

// startWithPeer starts a node whose only neighbor is the returned end of a link.
func startWithPeer(t *testing.T, directives ...string) (*Node, *peer.Wire) {
	t.Helper()
	at, from := testenv.FreePort(t), testenv.FreePort(t)
	file := t.TempDir() + "/node.lnx"
	text := fmt.Sprintf("interface if0 %v/24 127.0.0.1:%d\nneighbor %v at 127.0.0.1:%d via if0\n",
		ours, at, theirs, from)
	for _, d := range directives {
		text += d + "\n"
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return Start(t, file), peer.Listen(t, from, at)
}

// peers lists the known properties of other people's nodes.
var peers = map[string]peer.Quirks{
	"plain":                  {},
	"drops options":          {DropOptions: true},
	"course reference":       {DropOptions: true, MSS: 1024, ISS: 785},
	"bare FIN, ACK storm":    {BareFIN: true, AckStorm: 5000, MSS: 1024},
	"repeated bare FIN":      {DropOptions: true, BareFIN: true, RepeatFIN: 2400},
	"initial sequence 0":     {ISS: 0},
	"sequence wraps":         {ISS: 0xffff_fff0, MSS: 1360},
	"SYN with window 0":      {SynWindow0: true},
	"loses data":             {LoseEach: 97},
	"loses data and options": {DropOptions: true, LoseEach: 31},
	"stalls silently":        {Stall: 200_000, StallFor: 300 * time.Millisecond},
}

func TestSendToQuirkyPeers(t *testing.T) {
	t.Parallel()
	for name, quirks := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, wire := startWithPeer(t)
			h := peer.New(wire, theirs, quirks)
			file := RandomFile(t, megabyte, 42)
			mark := n.Mark()
			n.Command("sendfile %s %v 7000 --json", file, theirs)
			came, err := h.Accept(7000, nil, patience)
			require.NoError(t, err)
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(want, came), "got %d bytes, want %d", len(came), len(want))
			n.Transferred(mark, file, Soon)

			stats := h.Stats
			t.Logf("%+v", stats)
			assert.Zero(t, stats.Options, "segments with options to a peer that offered none")
			assert.Zero(t, stats.Resets)
			assert.LessOrEqual(t, stats.Closing, mostAnswers(quirks, stats), "a storm must not be answered in kind")
			if quirks.DropOptions {
				// The first SYN and two retransmissions have options; the third retransmission has
				// none.
				assert.Equal(t, 3, stats.OptionSYNs)
				assert.Equal(t, 4, stats.SYNs)
			}
		})
	}
}

func TestReceiveFromQuirkyPeers(t *testing.T) {
	t.Parallel()
	for name, quirks := range peers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, wire := startWithPeer(t)
			h := peer.New(wire, theirs, quirks)
			data := make([]byte, megabyte)
			for i := range data {
				data[i] = byte(i * 7 / 3)
			}
			target := t.TempDir() + "/target"
			mark := n.Mark()
			n.Receive(target, 7000)
			_, err := h.Connect(netip.AddrPortFrom(ours, 7000), data, patience)
			require.NoError(t, err)
			n.Transferred(mark, target, Soon)
			came, err := os.ReadFile(target)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(data, came), "got %d bytes, want %d", len(came), len(data))

			stats := h.Stats
			t.Logf("%+v", stats)
			assert.Zero(t, stats.OptionSYNs, "a SYN without options gets an answer without them")
			assert.Zero(t, stats.Options)
			assert.Zero(t, stats.Resets)
			assert.LessOrEqual(t, stats.Closing, mostAnswers(quirks, stats), "a storm must not be answered in kind")
			// The node answers a storm of segments to a closed connection with resets (RFC 9293
			// §3.5.2).
			assert.LessOrEqual(t, stats.LateResets, quirks.AckStorm+quirks.RepeatFIN+5)
		})
	}
}

// mostAnswers returns how many segments a node may send to a peer after both FINs. It may send a
// few in reply to a storm of segments, and one for each segment that the peer retransmitted on a
// timeout (RFC 9293 §3.10.7.4). On a slow machine the timer retransmits a window of data before the
// peer reads the acknowledgments.
func mostAnswers(m peer.Quirks, s peer.Stats) int {
	return 50 + (m.AckStorm+m.RepeatFIN)/10 + s.Repeated
}

// If options are off, the first SYN has no options, whether the file or the shell turns them off.
func TestOptionsOff(t *testing.T) {
	for name, how := range map[string]struct{ directive, command string }{
		"file":  {"tcp options off", "sockets"},
		"shell": {"# nothing", "set tcp.options off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, wire := startWithPeer(t, how.directive)
			n.MustDo("%s", how.command)
			h := peer.New(wire, theirs, peer.Quirks{DropOptions: true})
			file := RandomFile(t, 100_000, 5)
			n.Command("sendfile %s %v 7000", file, theirs)
			came, err := h.Accept(7000, nil, patience)
			require.NoError(t, err)
			assert.Len(t, came, 100_000)
			assert.Zero(t, h.Stats.OptionSYNs)
		})
	}
}

// If the peer is silent instead of sending a reset, connecting fails within the limits of the
// profile: three tries of three seconds.
func TestSilentPeer(t *testing.T) {
	t.Parallel()
	n, wire := startWithPeer(t, "tcp profile 004")
	began := time.Now()
	mark := n.Mark()
	n.Command("connect %v 7000", theirs)
	var syns int
	for {
		p, ok := wire.Receive(began.Add(14 * time.Second))
		if !ok {
			break
		}
		if s, ok := peer.ParseSegment(p); ok && s.Flags&peer.SYN != 0 {
			syns++
		}
	}
	n.Await(mark, Soon, `connection timed out`)
	assert.Equal(t, 3, syns, "tries")
	assert.Empty(t, n.Sockets())
}

// The peer stops answering on an established connection, and data sent after that times out.
func TestPeerFallsSilent(t *testing.T) {
	t.Parallel()
	n, wire := startWithPeer(t, fastRetries)
	h := peer.New(wire, theirs, peer.Quirks{})
	n.Command("connect %v 7000", theirs)
	_, err := h.Accept(7000, nil, 500*time.Millisecond)
	require.Error(t, err, "the peer times out waiting for data")
	require.Equal(t, "ESTABLISHED", stateOf(n, 0))
	mark := n.Mark()
	n.MustDo("s 0 anybody there?")
	n.Await(mark, patience, `^Socket 0 .*(timed out|unreachable)`)
}
