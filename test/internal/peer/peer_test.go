package peer_test

import (
	"crypto/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/test/internal/peer"
)

var (
	one = netip.MustParseAddr("10.0.0.1")
	two = netip.MustParseAddr("10.0.0.2")
)

// Two peers exchange data: a fixture that does not work with itself cannot test anything.
func TestTwoPeers(t *testing.T) {
	for name, m := range map[string]peer.Quirks{
		"plain":     {},
		"wrap":      {ISS: 0xffff_ff00},
		"loss":      {LoseEach: 50},
		"bare FINs": {BareFIN: true, RepeatFIN: 5},
		"stall":     {Stall: 100_000, StallFor: 100 * time.Millisecond},
		"closed":    {SynWindow0: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, q := testenv.FreePort(t), testenv.FreePort(t)
			a := peer.New(peer.Listen(t, p, q), one, m)
			b := peer.New(peer.Listen(t, q, p), two, m)
			data := make([]byte, 300_000)
			_, _ = rand.Read(data)
			served := make(chan error, 1)
			go func() {
				_, err := a.Connect(netip.AddrPortFrom(two, 80), data, 20*time.Second)
				served <- err
			}()
			got, err := b.Accept(80, []byte("thanks"), 20*time.Second)
			require.NoError(t, err)
			assert.Equal(t, data, got)
			assert.NoError(t, <-served)
		})
	}
}

func TestPacketRoundTrip(t *testing.T) {
	s := peer.Segment{
		SrcPort: 1, DstPort: 2, Seq: 3, Ack: 4, Flags: peer.ACK, Window: 5, Options: []byte{2, 4, 5, 120},
		Payload: []byte("odd"),
	}
	p := peer.Packet{TTL: 16, Proto: peer.ProtoTCP, Src: one, Dst: two, Payload: s.Bytes(one, two)}
	gotPacket, ok := peer.ParsePacket(p.Bytes())
	require.True(t, ok)
	assert.Equal(t, p, gotPacket)
	gotSegment, ok := peer.ParseSegment(gotPacket)
	require.True(t, ok)
	assert.Equal(t, s, gotSegment)

	bad := p.Bytes()
	bad[len(bad)-1]++
	gotPacket, _ = peer.ParsePacket(bad)
	_, ok = peer.ParseSegment(gotPacket)
	assert.False(t, ok, "a wrong checksum")
}

func TestRIPHasTwoWidths(t *testing.T) {
	for width, dst := range map[int]string{8: "10.0.0.1/32", 12: "10.0.0.0/24"} {
		m := peer.RIP{Command: peer.RIPResponse, Width: width, Entries: []peer.RIPEntry{
			{Cost: 1, Dst: netip.MustParsePrefix(dst)}, {Cost: 16, Dst: netip.MustParsePrefix(dst)},
		}}
		got, ok := peer.ParseRIP(m.Bytes())
		require.True(t, ok)
		assert.Equal(t, m, got)
	}
}
