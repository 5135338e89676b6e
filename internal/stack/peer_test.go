package stack_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// RFC 1122 §4.2.3.10: an active OPEN to a broadcast or multicast address is an error.
func TestTCPConnectsOnlyToHosts(t *testing.T) {
	w, a, b, _ := line(t)
	for _, no := range []string{
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "0.0.0.1",
		"10.0.0.0", "10.0.0.255",
	} {
		_, err := a.TCP().Connect(w.now, addrPort(addr(no), 80), 0)
		require.ErrorIs(t, err, tcp.ErrNotHost, no)
	}
	_, err := a.TCP().Connect(w.now, addrPort(addr("10.1.0.255"), 80), 0)
	require.NoError(t, err, "a node does not know the broadcast address of another link")
	_, err = b.TCP().Connect(w.now, addrPort(addr("10.1.0.255"), 80), 0)
	require.ErrorIs(t, err, tcp.ErrNotHost)

	point := w.add(stack.Config{Interfaces: []stack.Interface{face("if0", "10.5.0.0/31")}})
	_, err = point.TCP().Connect(w.now, addrPort(addr("10.5.0.1"), 80), 0)
	require.NoError(t, err, "RFC 3021 §2.1: both addresses of a /31 are host addresses")
	self := w.add(stack.Config{Interfaces: []stack.Interface{face("if0", "127.0.0.1/8")}})
	_, err = self.TCP().Connect(w.now, addrPort(addr("127.0.0.1"), 80), 0)
	require.NoError(t, err, "the node's own address")
}

// RFC 9293 §3.9.2.3: a SYN from or to a broadcast or multicast address is ignored.
func TestSYNFromBroadcastIsIgnored(t *testing.T) {
	for _, row := range []struct {
		src, dst string
		taken    bool
	}{
		{"10.0.0.2", "10.0.0.1", true},
		{"10.0.0.255", "10.0.0.1", false},
		{"10.0.0.0", "10.0.0.1", false},
		{"255.255.255.255", "10.0.0.1", false},
		{"224.0.0.1", "10.0.0.1", false},
		{"127.0.0.1", "10.0.0.1", false},
		{"10.0.0.2", "10.0.0.255", false},
		{"10.0.0.2", "255.255.255.255", false},
	} {
		for port, state := range map[int]string{80: "listening", 81: "closed"} {
			w, a, b, _ := line(t)
			_, err := a.ListenTCP(netip.MustParseAddrPort("0.0.0.0:80"), 1)
			require.NoError(t, err)
			_, err = b.TCP().Connect(w.now, addrPort(addr("10.0.0.1"), port), 0)
			require.NoError(t, err)
			w.mangle = func(p []byte) { readdress(p, addr(row.src), addr(row.dst)); w.mangle = nil }
			w.step(w.now.Add(time.Millisecond))
			info := a.Interfaces().Infos()[0]
			drops := dropsOf(info.In)
			if row.taken {
				assert.Equal(t, uint64(1), info.Out.Packets, state)
				assert.Empty(t, drops)
				continue
			}
			assert.Zero(t, info.Out.Packets, "%v: sent a SYN-ACK or a reset: %s", row, state)
			assert.Equal(t, uint64(1), drops[ip.DropMartian.String()], "%v", row)
		}
	}
}

// readdress changes the addresses of a TCP segment's packet and corrects its checksums.
func readdress(p []byte, from, to netip.Addr) {
	src, dst := from.As4(), to.As4()
	copy(p[12:], src[:])
	copy(p[16:], dst[:])
	p[10], p[11] = 0, 0
	binary.BigEndian.PutUint16(p[10:], checksum.Checksum(p[:20]))
	seg := p[20:]
	seg[16], seg[17] = 0, 0
	sum := checksum.PseudoHeader(netip.AddrFrom4(src), netip.AddrFrom4(dst), ip.ProtoTCP, len(seg))
	binary.BigEndian.PutUint16(seg[16:], ^checksum.Fold(checksum.Sum(seg, sum)))
}

func TestListenersNeedALocalAddress(t *testing.T) {
	_, a, _, _ := line(t)
	at := netip.MustParseAddrPort
	_, err := a.ListenTCP(at("10.9.9.9:80"), 1)
	require.ErrorIs(t, err, stack.ErrNotOurs)
	l, err := a.ListenTCP(at("10.0.0.1:80"), 1)
	require.NoError(t, err)
	_, err = a.ListenTCP(at("0.0.0.0:80"), 1)
	require.ErrorIs(t, err, tcp.ErrPortInUse, "the wildcard address includes this one")
	l.Close(0)
	l, err = a.ListenTCP(netip.AddrPortFrom(netip.Addr{}, 80), 1)
	require.NoError(t, err)
	_, err = a.ListenTCP(at("10.0.0.1:80"), 1)
	require.ErrorIs(t, err, tcp.ErrPortInUse)
	l.Close(0)
	_, err = a.ListenTCP(at("10.0.0.1:80"), 1)
	require.NoError(t, err)
}
