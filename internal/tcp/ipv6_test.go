package tcp

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// over6 changes the script's path to one over IPv6 with the MTU of Ethernet.
func (s *script) over6() *script {
	s.path = Path{MTU: 1500, Local: addrC}
	s.tuple.LocalAddr, s.tuple.RemoteAddr = addrC, addrD
	return s
}

// RFC 9293 §3.7.1: the largest payload depends on the address family and on the peer's MSS option.
func TestRFC9293_3_7_1_MSSOfBothFamilies(t *testing.T) {
	for _, test := range []struct {
		v6                     bool
		mtu, offer, unoptioned int
	}{
		{false, 1500, 1460, 536},
		{false, 576, 536, 536},
		{false, 65535, 65495, 536},
		{true, 1500, 1440, 1220},
		{true, 1280, 1220, 1220},
		{true, 1000, 1220, 1220}, // RFC 8200 §5: no link has less than 1280
		{true, 65535, 65475, 1220},
	} {
		p := pathMTU{v6: test.v6}
		p.reroute(Path{MTU: test.mtu, DefaultMSS: true}, 0, clock.Never)
		assert.Equal(t, test.offer, int(p.offer()), test)
		p.peerOffers(&Options{}, true, false)
		assert.Equal(t, test.unoptioned, p.mss(p.MTU), test)
	}
}

// RFC 8201 §4: a report of a packet too big shortens the segments. The host discards a report with
// an MTU below 1280, and one about data that is not in flight (§6).
func TestRFC8201_4_PacketTooBig(t *testing.T) {
	for _, test := range []struct{ reported, mss int }{
		{1500, 1440}, {1499, 1439}, {1400, 1340}, {1280, 1220}, {1279, 1440}, {68, 1440}, {0, 1440},
	} {
		s := newScript(t, Config{}).over6()
		s.accept(Options{MSS: 1440, SACKPermitted: true})
		s.write(2880)
		s.expect(ACK, 1, 1, 1440)
		s.collect()
		for _, seq := range []uint32{s.iss, s.iss + 2881, s.iss + 1<<31} {
			s.h.TooBig(s.now, s.tuple, seq, test.reported)
			assert.Equal(t, 1440, s.c.Info().SndMSS, test)
		}
		s.h.TooBig(s.now, s.tuple, s.iss+1, test.reported)
		assert.Equal(t, test.mss, s.c.Info().SndMSS, test)
	}
}

// Connections over IPv6 survive loss, reordering and corruption, and find the MTU of a path whose
// routers do not report it. RFC 8899 §5.1.2: the search begins at 1280 bytes.
func TestTransferOverIPv6(t *testing.T) {
	for _, test := range []struct {
		name  string
		wire  wire
		knobs Knobs
		hole  int // the path drops longer packets; zero: none
	}{
		{name: "trains", wire: wire{merge: true}},
		{name: "losses", wire: wire{loss: 0.05, dup: 0.01, reorder: 0.02, corrupt: 0.01}},
		{name: "plain", knobs: Knobs{OptionsOff: true}, wire: wire{loss: 0.02}},
		{name: "cookies", knobs: Knobs{SynCookies: CookiesAlways}},
		{name: "black hole", wire: wire{bytesPerSec: 5e6}, hole: 1350},
		{name: "search", wire: wire{bytesPerSec: 5e6}, knobs: Knobs{MTUProbing: MTUProbingOn}, hole: 1400},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.wire.v6, test.wire.mtu, test.wire.delay = true, 1500, time.Millisecond
			w := newWorld(t, 11, test.wire, Config{Knobs: test.knobs})
			if test.hole != 0 {
				w.tap = func(_ int, h Header, n int) bool { return w.packet(&h, n) > test.hole }
			}
			a, b := w.connect()
			assert.Equal(t, "[fd00::2]:80", a.Tuple().Remote().String())
			s := newStream(a, b, 3<<20)
			require.True(t, w.transfer(5*time.Minute, s), "%+v", a.Info())
			if test.hole != 0 {
				assert.InDelta(t, test.hole, a.Info().PMTU, mtuStep)
				assert.LessOrEqual(t, a.Info().PMTU, test.hole)
				assert.Equal(t, a.Info().PMTU, w.hosts[0].PathMTU(w.now, addrD))
			}
			_ = b.CloseWrite(w.now)
			w.run(10 * time.Minute)
			for _, h := range w.hosts {
				assert.Zero(t, h.numConns())
				assert.Zero(t, h.TimeWaits())
			}
		})
	}
}

// RFC 4007 §6: a link-local address identifies a node only on its link.
func TestRFC4007_6_ConnectionsInZones(t *testing.T) {
	h := newScript(t, Config{}).over6().h
	conns := map[*Conn]bool{}
	for _, zone := range []string{"eth0", "eth1"} {
		remote := netip.AddrPortFrom(netip.MustParseAddr("fe80::2%"+zone), 80)
		c, err := h.Connect(clock.Time(time.Hour), remote, 5000)
		require.NoError(t, err)
		assert.Same(t, c, h.Find(c.Tuple()))
		conns[c] = true
		_, err = h.Connect(clock.Time(time.Hour), remote, 5000)
		require.ErrorIs(t, err, ErrExists)
	}
	assert.Len(t, conns, 2)
	assert.Equal(t, 2, h.numConns())
}

// RFC 4987 §3.6: a cookie encodes the MSS of each common MTU.
func TestRFC4987_3_6_CookiesOfIPv6(t *testing.T) {
	for _, test := range []struct{ offered, kept uint16 }{
		{1220, 1220}, {1340, 1340}, {1440, 1440}, {1460, 1440}, {1339, 1220}, {0, 1220}, {8940, 1440},
	} {
		s := newScript(t, Config{Knobs: Knobs{SynCookies: CookiesAlways}}).over6()
		s.listen(8)
		s.returnCookie(s.sendSYNForCookie(SYN, Options{MSS: test.offered, SACKPermitted: true}))
		assert.Equal(t, int(test.kept), s.c.Info().SndMSS, test)
	}
}

// RFC 9293 §3.4.1: the hash depends on every byte of both addresses.
func TestRFC9293_3_4_1_SequenceNumbersOfIPv6(t *testing.T) {
	seen := map[uint32]string{}
	for i := range 16 {
		for _, remote := range []bool{false, true} {
			tuple := Tuple{LocalAddr: addrC, RemoteAddr: addrD, LocalPort: 50000, RemotePort: 80}
			side := &tuple.LocalAddr
			if remote {
				side = &tuple.RemoteAddr
			}
			b := side.As16()
			b[i] ^= 0x80
			*side = netip.AddrFrom16(b)
			n := initialSequence(&[16]byte{1}, 0, &tuple)
			assert.Empty(t, seen[n], tuple)
			seen[n] = tuple.String()
		}
	}
	assert.Len(t, seen, 32)
}

// RFC 3493 §3.7 and §5.3: a listener on :: accepts connections of both families, unless it is for
// IPv6 only.
func TestRFC3493_5_3_ListenersOfBothFamilies(t *testing.T) {
	const only = "IPv6 only"
	listen := func(h *Host, at string) (*Listener, error) {
		switch at {
		case only:
			return h.ListenIPv6(80, 1)
		case "":
			return h.Listen(netip.AddrPortFrom(netip.Addr{}, 80), 1)
		default:
			return h.Listen(netip.AddrPortFrom(netip.MustParseAddr(at), 80), 1)
		}
	}
	for _, test := range []struct {
		at, local string
		v4, v6    bool     // whether it accepts connections to addrA and to addrC
		with      []string // other listeners that are possible at the same time
	}{
		{"", "[::]:80", true, true, nil},
		{"::", "[::]:80", true, true, nil},
		{"0.0.0.0", "0.0.0.0:80", true, false, []string{only, "fd00::1", "fd00::9"}},
		{only, "[::]:80", false, true, []string{"0.0.0.0", "10.0.0.1", "10.0.0.9"}},
		{"10.0.0.1", "10.0.0.1:80", true, false, []string{only, "fd00::1", "fd00::9", "10.0.0.9"}},
		{"::ffff:10.0.0.1", "10.0.0.1:80", true, false, []string{only, "fd00::1", "fd00::9", "10.0.0.9"}},
		{"fd00::1", "[fd00::1]:80", false, true, []string{"0.0.0.0", "10.0.0.1", "10.0.0.9", "fd00::9"}},
	} {
		s := newScript(t, Config{})
		l, err := listen(s.h, test.at)
		require.NoError(t, err, test.at)
		assert.Equal(t, test.local, l.Local().String(), test.at)
		for i, tuple := range []Tuple{
			{LocalAddr: addrA, RemoteAddr: addrB, LocalPort: 80, RemotePort: 4000},
			{LocalAddr: addrC, RemoteAddr: addrD, LocalPort: 80, RemotePort: 4000},
		} {
			s.tuple = tuple
			s.send(SYN, 0, 0, 0)
			assert.Equal(t, []bool{test.v4, test.v6}[i], s.h.has(tuple), fmt.Sprint(test.at, " ", tuple))
			assert.Equal(t, s.h.has(tuple), s.h.Listens(tuple.Local()))
		}
		for _, other := range []string{
			"", "::", "0.0.0.0", only, "10.0.0.1", "10.0.0.9", "fd00::1", "fd00::9",
		} {
			h := newScript(t, Config{}).h
			_, err := listen(h, test.at)
			require.NoError(t, err)
			_, err = listen(h, other)
			if assert.Equal(t, slices.Contains(test.with, other), err == nil, "%q with %q", test.at, other); err != nil {
				require.ErrorIs(t, err, ErrPortInUse)
			}
		}
		l.Close(s.now)
		assert.False(t, s.h.Listens(netip.AddrPortFrom(netip.Addr{}, 80)), test.at)
	}
}
