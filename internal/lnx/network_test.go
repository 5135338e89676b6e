package lnx_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// TestCheckNetwork compares pairs of files. The file A is always the same.
func TestCheckNetwork(t *testing.T) {
	const a = "interface if0 10.0.0.1/24 127.0.0.1:5000\nneighbor 10.0.0.2 at 127.0.0.1:5001 via if0\n"
	for name, test := range map[string]struct{ b, want string }{
		"right": {
			"interface if0 10.0.0.2/24 localhost:5001\nneighbor 10.0.0.1 at localhost:5000 via if0\n", "",
		},
		"address and socket of another": {
			"interface if0 10.0.0.1/24 localhost:5000\n",
			`A.lnx:2:22: note: no node of this network has the UDP address 127.0.0.1:5001
    neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
                         ^^^^^^^^^^^^^^
B.lnx:1:15: 10.0.0.1 is also the address of if0 of A; expected an address of its own
    interface if0 10.0.0.1/24 localhost:5000
                  ^^^^^^^^
B.lnx:1:27: localhost:5000 is also the UDP address of if0 of A; expected an address of its own
    interface if0 10.0.0.1/24 localhost:5000
                              ^^^^^^^^^^^^^^`,
		},
		"another node is there": {
			"interface if0 10.0.0.3/24 127.0.0.1:5001\nneighbor 10.0.0.1 at 127.0.0.1:5000 via if0\n",
			`A.lnx:2:10: 10.0.0.2 is not the address of B at 127.0.0.1:5001; expected 10.0.0.3
    neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
             ^^^^^^^^
B.lnx:2:10: note: A does not list 10.0.0.3 as its neighbor
    neighbor 10.0.0.1 at 127.0.0.1:5000 via if0
             ^^^^^^^^`,
		},
		"no node is there": {
			"interface if0 10.0.0.2/24 127.0.0.1:5002\n",
			`A.lnx:2:22: note: no node of this network has the UDP address 127.0.0.1:5001
    neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
                         ^^^^^^^^^^^^^^`,
		},
		"unknown in turn": {
			"interface if0 10.0.0.2/24 127.0.0.1:5001\n",
			`A.lnx:2:10: note: B does not list 10.0.0.1 as its neighbor
    neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
             ^^^^^^^^`,
		},
		"an answer that goes astray": {
			"interface if0 10.0.0.2/24 127.0.0.1:5001\nneighbor 10.0.0.1 at 127.0.0.1:5009 via if0\n",
			`A.lnx:2:10: note: B answers to 127.0.0.1:5009, but if0 has 127.0.0.1:5000
    neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
             ^^^^^^^^
B.lnx:2:22: note: no node of this network has the UDP address 127.0.0.1:5009
    neighbor 10.0.0.1 at 127.0.0.1:5009 via if0
                         ^^^^^^^^^^^^^^`,
		},
		"subnets of different size": {
			"interface if0 10.0.0.2/16 127.0.0.1:5001\nneighbor 10.0.0.1 at 127.0.0.1:5000 via if0\n",
			`A.lnx:2:10: note: the two ends of the link have subnets of different size, 10.0.0.1/24 and 10.0.0.2/16
    neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
             ^^^^^^^^
B.lnx:2:10: note: the two ends of the link have subnets of different size, 10.0.0.2/16 and 10.0.0.1/24
    neighbor 10.0.0.1 at 127.0.0.1:5000 via if0
             ^^^^^^^^`,
		},
		"the old grammar": {
			"127.0.0.1 5001\n127.0.0.1 5000 10.0.0.2 10.0.0.1\nlocalhost 5003 10.1.0.1 10.1.0.2\n",
			`A.lnx:2:10: note: the two ends of the link have subnets of different size, 10.0.0.1/24 and 10.0.0.2/32
    neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
             ^^^^^^^^
B.lnx:2:25: note: the two ends of the link have subnets of different size, 10.0.0.2/32 and 10.0.0.1/24
    127.0.0.1 5000 10.0.0.2 10.0.0.1
                            ^^^^^^^^
B.lnx:3:1: note: no node of this network has the UDP address localhost:5003
    localhost 5003 10.1.0.1 10.1.0.2
    ^^^^^^^^^^^^^^`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfgA, err := lnx.Parse("A.lnx", []byte(a))
			require.NoError(t, err)
			cfgB, err := lnx.Parse("B.lnx", []byte(test.b))
			require.NoError(t, err)
			found := lnx.CheckNetwork(cfgA, cfgB)
			assert.Equal(t, test.want, found.Error())
		})
	}
}

func TestCheckNetworkDistinguishesNotesFromErrors(t *testing.T) {
	a, err := lnx.Parse("A.lnx", []byte(
		"interface if0 10.0.0.1/24 127.0.0.1:5000\nneighbor 10.0.0.2 at 127.0.0.1:5001 via if0\n"))
	require.NoError(t, err)
	notes := lnx.CheckNetwork(a)
	require.Len(t, notes, 1)
	require.NoError(t, notes.Err())
	assert.Empty(t, lnx.CheckNetwork(a, nil), "a file that is wrong may have that UDP address")
	twice := lnx.CheckNetwork(a, a)
	require.Error(t, twice.Err())
}

// If one of two routers rejects the other's RIP messages, the note is at the router that sends
// them.
func TestCheckNetworkComparesRIP(t *testing.T) {
	const (
		a = "interface if0 10.0.0.1/24 127.0.0.1:5000\nneighbor 10.0.0.2 at 127.0.0.1:5001 via if0\n"
		b = "interface if0 10.0.0.2/24 127.0.0.1:5001\nneighbor 10.0.0.1 at 127.0.0.1:5000 via if0\n"
	)
	for _, tt := range []struct {
		name, a, b string
		want       []string
	}{
		{"the same key", "rip key if0 1 md5 tide\n", "rip key if0 1 md5 tide\n", nil},
		{"while a key changes", "rip key if0 1 md5 a\nrip key if0 2 md5 b\n", "rip key if0 2 md5 b\nrip key if0 1 md5 a\n", nil},
		{
			"another secret", "rip key if0 1 md5 tide\n", "rip key if0 1 md5 ebb\n",
			[]string{
				"B does not know our key 1 (md5), so it refuses our messages",
				"A does not know our key 1 (md5), so it refuses our messages",
			},
		},
		{
			"none on one side", "rip password if0 tide\n", "",
			[]string{
				"B does not know our password, so it refuses our messages",
				"A requires authentication, and this file has no key for it",
			},
		},
		{"none, but passive", "rip password if0 tide\nrip interface if0 passive on\n", "rip interface if0 send none\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfgA, err := lnx.Parse("A.lnx", []byte(a+"routing rip2\n"+tt.a))
			require.NoError(t, err)
			cfgB, err := lnx.Parse("B.lnx", []byte(b+"routing rip2\n"+tt.b))
			require.NoError(t, err)
			var got []string
			for _, e := range lnx.CheckNetwork(cfgA, cfgB) {
				assert.True(t, e.Note)
				got = append(got, e.Msg)
			}
			assert.Equal(t, tt.want, got)
		})
	}
	cfgA, err := lnx.Parse("A.lnx", []byte(a+"routing rip2\n"))
	require.NoError(t, err)
	cfgB, err := lnx.Parse("B.lnx", []byte(b+"routing rip\n"))
	require.NoError(t, err)
	assert.ErrorContains(t, lnx.CheckNetwork(cfgA, cfgB),
		"routing is rip2 here and rip at B: they do not understand each other")
}

// The test covers the dialects that a file can name, those that two routers on a link share, and
// the errors.
func TestRoutingByFamily(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")
	for words, want := range map[string][2]lnx.Routing{
		"static":    {lnx.RoutingNone, lnx.RoutingNone},
		"none":      {lnx.RoutingNone, lnx.RoutingNone},
		"rip":       {lnx.RoutingRIP, lnx.RoutingNone},
		"rip2":      {lnx.RoutingRIP2, lnx.RoutingRIPng},
		"ripng":     {lnx.RoutingNone, lnx.RoutingRIPng},
		"rip ripng": {lnx.RoutingRIP, lnx.RoutingRIPng},
	} {
		const iface = "interface if0 2001:db8::1/64 127.0.0.1:5000\n"
		c, err := lnx.Parse("A.lnx", []byte(iface+"routing "+words+"\nrip originate prefix 2001:db8:f::/48\n"))
		require.NoError(t, err)
		assert.Equal(t, want, [2]lnx.Routing{c.Routing.Dialect(v4), c.Routing.Dialect(v6)}, words)
		assert.Equal(t, want[0] != want[1], c.SpeaksRIP() && c.Forwarding, words)
		again, err := lnx.Parse("A.lnx", c.Format())
		require.NoError(t, err)
		assert.Equal(t, c.Routing, again.Routing)
		assert.Equal(t, c.RIP, again.RIP)
	}
	for words, want := range map[string]string{
		"rip2 ripng":  "not a protocol that runs with rip2",
		"rip rip2":    "not a protocol that runs with rip",
		"ripgn":       "did you mean ripng",
		"rip ripng x": "not expected here",
	} {
		_, err := lnx.Parse("A.lnx", []byte("interface if0 10.0.0.1/24 127.0.0.1:5000\nrouting "+words+"\n"))
		assert.ErrorContains(t, err, want, words)
	}
}
