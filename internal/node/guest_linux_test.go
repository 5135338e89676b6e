package node

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// The programs of a host get the kernel's bursts of 45 segments in one call each, although a train
// over UDP has at most 43. A shorter segment ends a call.
func TestGuestReceivesLongTrains(t *testing.T) {
	inNetns(t)
	n := start(t, Config{}, "G", "interface tun0 10.8.0.1/24 tun:tide0\n")
	guest, err := link.OpenTUN(link.TUNConfig{
		Device: "guest0", Kernel: []netip.Prefix{netip.MustParsePrefix("10.9.0.2/24")},
		Interface: link.Interface{
			Name: "guest0", Local: netip.MustParseAddr("10.9.0.1"), MTU: 1500,
		},
	})
	require.NoError(t, err)
	require.NoError(t, n.Devices.Guest(guest))
	const burst, full = 45, 1448
	for name, tt := range map[string]struct {
		sizes []int
		calls uint64
	}{
		"a segment":           {[]int{full}, 1},
		"a burst":             {repeated(full, burst), 1},
		"two bursts":          {repeated(full, 2*burst), 2},
		"a short segment":     {append(repeated(full, 20), 7), 1},
		"after a short one":   {append(repeated(full, 20), 7, full, full), 2},
		"after a shorter one": {[]int{7, full, full}, 2},
	} {
		var before, after link.SocketCounters
		var sent uint64
		err := n.Ask(func(*stack.Stack, clock.Time) error {
			before, sent = guest.Socket(), guest.Counters(0).TxPackets
			for _, p := range segmentsOf(tt.sizes) {
				n.Devices.toGuest(true, p)
			}
			n.Devices.drainGuest()
			after, sent = guest.Socket(), guest.Counters(0).TxPackets-sent
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, tt.calls, after.Writes-before.Writes, name)
		assert.Equal(t, uint64(len(tt.sizes)), sent, name)
	}
}

func repeated(size, times int) (list []int) {
	for range times {
		list = append(list, size)
	}
	return list
}

// segmentsOf returns consecutive TCP segments with payloads of these sizes.
func segmentsOf(sizes []int) (list [][]byte) {
	const ipLen, tcpLen = 20, 32
	seq := uint32(1)
	for i, size := range sizes {
		b := make([]byte, ipLen+tcpLen+size)
		// header with the DF flag, TTL 64 and protocol TCP
		b[0], b[6], b[8], b[9] = 0x45, 0x40, 64, 6
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		binary.BigEndian.PutUint16(b[4:], uint16(i))
		copy(b[12:], []byte{10, 0, 0, 1, 10, 9, 0, 2})
		segment := b[ipLen:]
		binary.BigEndian.PutUint16(segment, 4000)
		binary.BigEndian.PutUint16(segment[2:], 80)
		binary.BigEndian.PutUint32(segment[4:], seq)
		segment[12], segment[13] = tcpLen/4<<4, 0x10 // header length, and the ACK flag
		copy(segment[20:], []byte{1, 1, 8, 10})      // timestamp option
		seq += uint32(size)
		list = append(list, b)
	}
	return list
}
