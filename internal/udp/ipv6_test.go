package udp_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// bindAny calls Bind, or BindIPv6 for "only:PORT".
func bindAny(h *udp.Host, local string) (*udp.Socket, error) {
	if port, only := strings.CutPrefix(local, "only"); only {
		return h.BindIPv6(at("[::]" + port).Port())
	}
	return h.Bind(at(local))
}

// RFC 3493 §3.7 and §5.3: a socket on :: receives both families, unless it is for IPv6 only.
// Addresses of IPv4 packets are IPv4 addresses.
func TestRFC3493_5_3_SocketsOfBothFamilies(t *testing.T) {
	all := []string{
		"0.0.0.0:53", "[::]:53", "only:53", "10.0.0.2:53", "10.0.0.9:53", "[fd00::2]:53", "[fd00::9]:53",
	}
	for _, test := range []struct {
		local  string
		v4, v6 bool
		with   []string
	}{
		{"[::]:53", true, true, nil},
		{"0.0.0.0:53", true, false, []string{"only:53", "[fd00::2]:53", "[fd00::9]:53"}},
		{"only:53", false, true, []string{"0.0.0.0:53", "10.0.0.2:53", "10.0.0.9:53"}},
		{"10.0.0.2:53", true, false, []string{"only:53", "10.0.0.9:53", "[fd00::2]:53", "[fd00::9]:53"}},
		{"[fd00::2]:53", false, true, []string{"0.0.0.0:53", "10.0.0.2:53", "10.0.0.9:53", "[fd00::9]:53"}},
	} {
		h := newHost(0)
		s, err := bindAny(h, test.local)
		require.NoError(t, err)
		want := map[bool]udp.Verdict{true: udp.Delivered, false: udp.NoPort}
		assert.Equal(t, want[test.v4], send(h, "10.0.0.1:9", "10.0.0.2:53", "four"), test.local)
		assert.Equal(t, want[test.v6], send(h, "[fd00::1]:9", "[fd00::2]:53", "six"), test.local)
		if test.v4 {
			assert.Equal(t, "10.0.0.1:9 four", take(s))
		}
		if test.v6 {
			assert.Equal(t, "[fd00::1]:9 six", take(s))
		}
		for _, peer := range []string{"10.0.0.1:9", "[fd00::1]:9"} {
			assert.Equal(t, s.Connect(at(peer)) == nil, map[bool]bool{true: test.v4, false: test.v6}[at(peer).Addr().Is4()])
		}
		for _, other := range all {
			if u, err := bindAny(h, other); slices.Contains(test.with, other) {
				require.NoError(t, err, "%s with %s", test.local, other)
				u.Close()
			} else {
				require.ErrorIs(t, err, udp.ErrPortInUse, "%s with %s", test.local, other)
			}
		}
		s.Close()
		for _, other := range all {
			u, err := bindAny(h, other)
			require.NoError(t, err, "%s after %s", other, test.local)
			u.Close()
		}
	}
}

// RFC 8200 §8.1: IPv6 requires a checksum, even if the datagram is known to be intact.
func TestRFC8200_8_1_NoChecksum(t *testing.T) {
	h := newHost(0)
	s := bind(t, h, "[::]:53")
	for _, row := range []struct {
		src, dst string
		without  udp.Verdict
	}{
		{"10.0.0.1", "10.0.0.2", udp.Delivered},
		{"fd00::1", "fd00::2", udp.NoChecksum},
	} {
		src, dst := netip.MustParseAddr(row.src), netip.MustParseAddr(row.dst)
		b := udp.Header{SrcPort: 9, DstPort: 53}.Append(nil, src, dst, []byte("text"))
		for _, checked := range []bool{false, true} {
			a := udp.Arrival{Src: src, Dst: dst, Checked: checked, Iface: 7, TTL: 3}
			assert.Equal(t, udp.Delivered, h.Input(a, b))
			r, _ := udp.Dequeue(s.Rx(), nil)
			assert.Equal(t, udp.Received{
				From: netip.AddrPortFrom(src, 9), To: dst, Len: 4, Iface: 7, TTL: 3, Checked: checked,
			}, r)
			assert.Equal(t, row.without, h.Input(a, append(slices.Concat(b[:6], []byte{0, 0}), b[8:]...)))
			udp.Dequeue(s.Rx(), nil)
		}
		wrong := slices.Clone(b)
		wrong[9] ^= 1
		assert.Equal(t, udp.BadChecksum, h.Input(udp.Arrival{Src: src, Dst: dst}, wrong))
	}
}

// RFC 4291 §2.5.2, §2.5.3, §2.5.5 and §2.7: these addresses cannot be the source of a packet.
func TestRFC4291_2_5_SourcesOfDatagrams(t *testing.T) {
	h := newHost(0)
	bind(t, h, "[::]:67")
	for from, want := range map[string]udp.Verdict{
		"[fd00::1]:68": udp.Delivered, "[fe80::1]:68": udp.Delivered, "[2001:db8::]:68": udp.Delivered,
		"[::]:68": udp.BadSource, "[::1]:68": udp.BadSource, "[ff02::1]:68": udp.BadSource,
		"[::ffff:10.0.0.1]:68": udp.BadSource,
	} {
		assert.Equal(t, want, send(h, from, "[fd00::2]:67", ""), from)
	}
	assert.Equal(t, udp.Delivered, send(h, "[::1]:68", "[::1]:67", ""))
}

// RFC 4007 §6: the addresses of a datagram keep their zone, unless the zone is too long.
func TestRFC4007_6_DatagramsInZones(t *testing.T) {
	h := newHost(0)
	s := bind(t, h, "[::]:53")
	long := strings.Repeat("z", 63)
	for _, row := range []struct{ src, dst, from, to string }{
		{"fe80::1%eth0", "fe80::2%eth0", "fe80::1%eth0", "fe80::2%eth0"},
		{"fe80::1%eth1", "fd00::2", "fe80::1%eth1", "fd00::2"},
		{"fd00::1", "fe80::2%eth1", "fd00::1", "fe80::2%eth1"},
		{"fe80::1%" + long, "fd00::2", "fe80::1%" + long, "fd00::2"},
		{"fe80::1%" + long + "y", "fd00::2", "fe80::1%" + long, "fd00::2"},
		{"fd00::1", "fd00::2", "fd00::1", "fd00::2"},
	} {
		src, dst := netip.MustParseAddr(row.src), netip.MustParseAddr(row.dst)
		for _, text := range []string{"", "text", strings.Repeat("long ", 200)} {
			b := udp.Header{SrcPort: 9, DstPort: 53}.Append(nil, src, dst, []byte(text))
			require.Equal(t, udp.Delivered, h.Input(udp.Arrival{Src: src, Dst: dst}, b))
			p := make([]byte, 2000)
			r, ok := udp.Dequeue(s.Rx(), p)
			require.True(t, ok)
			assert.Equal(t, []string{row.from, row.to, text}, []string{
				r.From.Addr().String(), r.To.String(), string(p[:r.Len]),
			})
			assert.Zero(t, s.Rx().Len())
		}
	}
}

// RFC 8201 §4: a report of less than 1280 bytes is discarded.
func TestRFC8201_4_ReportsToSockets(t *testing.T) {
	for _, row := range []struct {
		local, remote   string
		reported, known int
	}{
		{"10.0.0.2:53", "10.0.0.1:9", 600, 600},
		{"[fd00::2]:53", "[fd00::1]:9", 1280, 1280},
		{"[fd00::2]:53", "[fd00::1]:9", 1279, 0},
		{"[fd00::2]:53", "[fd00::1]:9", 1500, 0},
	} {
		h := newHost(0)
		s := bind(t, h, row.local)
		require.NoError(t, s.Connect(at(row.remote)))
		h.TooBig(clock.Time(1), at(row.local), at(row.remote), 1500, row.reported)
		assert.Equal(t, row.known, s.PathMTU(clock.Time(1)), row)
	}
}

// A socket joins IPv6 groups on the link of an interface, like IPv4 groups.
func TestGroupsOfIPv6(t *testing.T) {
	h := newHost(0)
	s := bind(t, h, "[::]:5353")
	group := netip.MustParseAddr("ff02::fb")
	require.NoError(t, s.Join(2, group))
	src := netip.MustParseAddr("fe80::1")
	b := udp.Header{SrcPort: 5353, DstPort: 5353}.Append(nil, src, group, nil)
	for iface, want := range []udp.Verdict{udp.NoPort, udp.NoPort, udp.Delivered} {
		assert.Equal(t, want, h.Input(udp.Arrival{Src: src, Dst: group, Iface: iface}, b), iface)
	}
}
