//go:build linux

package end

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/tidepool-net/tidepool/bench/datagram"
	"github.com/tidepool-net/tidepool/internal/checksum"
)

func TestPlaneChecksum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for length := range 200 {
		b := make([]byte, length)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		got := fold(sum(b, 0))
		want := checksum.Fold(checksum.Sum(b, 0))
		assert.Equal(t, want, got<<8|got>>8, "%d bytes", length)
	}
}

func TestPlaneVerifiesSegments(t *testing.T) {
	head, text := make([]byte, planeHead), pattern[:1360]
	planeHeaders(head, text, 7)
	segment := append(head, text...)
	var r planeReceiver
	run := datagram.Received{Data: append(append([]byte(nil), segment...), segment...), Size: 1400}
	assert.Equal(t, 2720, r.take(run))
	run.Data[1500] ^= 1
	assert.Equal(t, 1360, r.take(run))
	assert.Equal(t, int64(1400), r.bad)
}

// gVisor's tuned link splits a packet into valid segments.
func TestGvisorSegmentsAreValid(t *testing.T) {
	const mss, ipLen, tcpLen = 1000, 20, 32
	text := pattern[:2500]
	whole := make([]byte, ipLen+tcpLen)
	ip := header.IPv4(whole)
	ip.Encode(&header.IPv4Fields{
		TotalLength: uint16(ipLen + tcpLen + len(text)), ID: 41, TTL: 64, Protocol: 6,
		SrcAddr: tcpip.AddrFrom4([4]byte{10, 0, 0, 1}), DstAddr: tcpip.AddrFrom4([4]byte{10, 0, 0, 2}),
	})
	seg := header.TCP(whole[ipLen:])
	seg.Encode(&header.TCPFields{
		SeqNum: 5, DataOffset: tcpLen, Flags: header.TCPFlagAck | header.TCPFlagPsh,
	})
	for i := range 3 {
		part := text[i*mss : min(len(text), (i+1)*mss)]
		head := append([]byte(nil), whole...)
		segment(head, part, ipLen, i*mss, i, i == 2)
		ip, seg := header.IPv4(head), header.TCP(head[ipLen:])
		assert.True(t, ip.IsChecksumValid())
		assert.Equal(t, uint16(41+i), ip.ID())
		assert.Equal(t, uint32(5+i*mss), seg.SequenceNumber())
		assert.Equal(t, i == 2, seg.Flags().Contains(header.TCPFlagPsh))
		partSum := checksum.Fold(checksum.Sum(part, 0))
		assert.True(t, seg.IsChecksumValid(ip.SourceAddress(), ip.DestinationAddress(), partSum,
			uint16(len(part))))
	}
}

// A relay drops each packet with the given probability and delays the others.
func TestRelayLosesItsShare(t *testing.T) {
	far, err := datagram.Open(netip.AddrPort{}, netip.AddrPort{}, datagram.LongQueue)
	require.NoError(t, err)
	near, err := datagram.Open(netip.AddrPort{}, netip.AddrPort{}, datagram.LongQueue)
	require.NoError(t, err)
	p := process{spec: Spec{
		Sides: []Side{{Peer: near.Addr()}, {Peer: far.Addr()}},
		Loss:  0.5, Delay: time.Millisecond, Seed: 1,
	}}
	sockets, stop, err := p.carry()
	require.NoError(t, err)
	from, err := datagram.Open(netip.AddrPort{}, sockets[0].Addr(), datagram.LongQueue)
	require.NoError(t, err)
	began := time.Now()
	const count = 400
	for range count / 40 {
		b := pattern[:40*1000]
		require.NoError(t, from.Send([]unix.Iovec{datagram.Piece(b)}, len(b), 1000))
	}
	require.NoError(t, from.Send([]unix.Iovec{datagram.Piece(pattern[:1])}, 1, 1))
	got := 0
	for batch := far.NewBatch(8); got < count/3; {
		list, err := batch.Receive()
		require.NoError(t, err)
		for _, r := range list {
			got += len(r.Data) / 1000
		}
	}
	assert.Less(t, got, count*2/3)
	assert.GreaterOrEqual(t, time.Since(began), time.Millisecond)
	require.NoError(t, stop())
	for _, s := range []*datagram.Socket{far, near, from} {
		require.NoError(t, s.Close())
	}
}
