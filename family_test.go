package tidepool_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// dualPair is pair with both families: 10.0.0.1 is also 2001:db8::1.
func dualPair(tb testing.TB, cfg tidepool.Config) (a, b *tidepool.Node) {
	tb.Helper()
	x, y := tidepool.Pipe(0)
	return open(tb, dual(host(cfg, "10.0.0.1/24", "", x))), open(tb, dual(host(cfg, "10.0.0.2/24", "", y)))
}

// The networks of Listen and Dial are those of package net: a listener without a host, or at an
// unspecified address, is for both families unless the network ends in 4 or 6.
func TestListenersOfBothFamilies(t *testing.T) {
	for _, row := range []struct {
		network, address, says string
		reached                [2]bool // by IPv4, by IPv6
	}{
		{"tcp", ":80", "[::]:80", [2]bool{true, true}},
		{"tcp", "[::]:80", "[::]:80", [2]bool{true, true}},
		{"tcp", "0.0.0.0:80", "[::]:80", [2]bool{true, true}},
		{"tcp4", ":80", "0.0.0.0:80", [2]bool{true, false}},
		{"tcp4", "[::]:80", "0.0.0.0:80", [2]bool{true, false}},
		{"tcp6", ":80", "[::]:80", [2]bool{false, true}},
		{"tcp6", "[::]:80", "[::]:80", [2]bool{false, true}},
		{"tcp", "10.0.0.1:80", "10.0.0.1:80", [2]bool{true, false}},
		{"tcp", "[2001:db8::1]:80", "[2001:db8::1]:80", [2]bool{false, true}},
	} {
		a, b := dualPair(t, tidepool.Config{})
		l, err := a.Listen(row.network, row.address)
		require.NoError(t, err, row)
		assert.Equal(t, row.says, l.Addr().String())
		for k, to := range []string{"10.0.0.1:80", "[2001:db8::1]:80"} {
			c, err := b.Dial("tcp", to)
			if !row.reached[k] {
				require.ErrorIs(t, err, syscall.ECONNREFUSED, "%v by %s", row, to)
				continue
			}
			require.NoError(t, err, "%v by %s", row, to)
			assert.Equal(t, to, c.RemoteAddr().String())
			accepted, err := l.Accept()
			require.NoError(t, err)
			assert.Equal(t, c.LocalAddr(), accepted.RemoteAddr())
			require.NoError(t, c.Close())
			require.NoError(t, accepted.Close())
		}
		require.NoError(t, l.Close())
	}
}

// Listeners of one family share a port.
func TestListenersOfOneFamilyShareAPort(t *testing.T) {
	a, _ := dualPair(t, tidepool.Config{})
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := a.Listen(network, ":80")
		require.NoError(t, err)
		defer l.Close()
	}
	_, err := a.Listen("tcp", ":80")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	for _, network := range []string{"udp4", "udp6"} {
		c, err := a.ListenPacket(network, ":53")
		require.NoError(t, err)
		defer c.Close()
	}
	_, err = a.ListenPacket("udp", ":53")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}

// UDP has the same networks. A socket for both families shows IPv4 addresses as such.
func TestPacketConnsOfBothFamilies(t *testing.T) {
	a, b := dualPair(t, tidepool.Config{})
	c, err := a.ListenPacket("udp", ":53")
	require.NoError(t, err)
	defer c.Close()
	assert.Equal(t, "[::]:53", c.LocalAddr().String())
	only, err := a.ListenPacket("udp6", "[::]:54")
	require.NoError(t, err)
	defer only.Close()
	four, err := a.ListenPacket("udp4", ":55")
	require.NoError(t, err)
	defer four.Close()
	for to, from := range map[string]net.PacketConn{"10.0.0.2:9": only, "[2001:db8::2]:9": four} {
		_, err := from.WriteTo([]byte("other family"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
		require.ErrorIs(t, err, syscall.EAFNOSUPPORT, to)
	}
	buf := make([]byte, 10)
	for _, from := range []string{"10.0.0.2", "2001:db8::2"} {
		to := map[string]string{"10.0.0.2": "10.0.0.1", "2001:db8::2": "2001:db8::1"}[from]
		u, err := b.Dial("udp", net.JoinHostPort(to, "53"))
		require.NoError(t, err)
		_, err = u.Write([]byte("ask"))
		require.NoError(t, err)
		_, peer, err := c.ReadFrom(buf)
		require.NoError(t, err)
		assert.Equal(t, u.LocalAddr().String(), peer.String())
		_, err = c.WriteTo([]byte("answer"), peer)
		require.NoError(t, err)
		n, err := u.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, "answer", string(buf[:n]))
		require.NoError(t, u.Close())
	}
	u, err := b.Dial("udp4", "10.0.0.1:54")
	require.NoError(t, err)
	defer u.Close()
	_, err = u.Write([]byte("closed"))
	require.NoError(t, err)
	_, err = u.Read(buf)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// The zone of a link-local address is the name of its interface (RFC 4007 §11).
func TestLinkLocalAddressesHaveZones(t *testing.T) {
	a, b := dualPair(t, tidepool.Config{})
	l, err := a.Listen("tcp", "[fe80::1%if0]:80")
	require.NoError(t, err)
	defer l.Close()
	assert.Equal(t, "[fe80::1%if0]:80", l.Addr().String())
	c, err := b.Dial("tcp6", "[fe80::1%if0]:80")
	require.NoError(t, err)
	defer c.Close()
	assert.Equal(t, "[fe80::1%if0]:80", c.RemoteAddr().String())
	assert.Equal(t, "fe80::2", c.LocalAddr().(*net.TCPAddr).IP.String())
	_, err = b.Dial("tcp", "[fe80::1%if7]:80")
	require.ErrorContains(t, err, `zone "if7" is not an interface with IPv6: must be fe80::1%if0`)
}

// An address of another family than the network's has the error of package net.
func TestAddressesOfTheOtherFamily(t *testing.T) {
	a, _ := dualPair(t, tidepool.Config{})
	for _, row := range [][2]string{
		{"tcp4", "[2001:db8::1]:80"}, {"tcp6", "10.0.0.1:80"}, {"tcp6", "0.0.0.0:80"},
	} {
		_, got := a.Listen(row[0], row[1])
		_, want := net.Listen(row[0], row[1])
		require.Error(t, want)
		require.EqualError(t, got, want.Error())
		_, got = a.Dial(row[0], row[1])
		_, want = net.Dial(row[0], row[1])
		require.EqualError(t, got, want.Error())
	}
}

// An interface may have only IPv6 addresses.
func TestIPv6Only(t *testing.T) {
	x, y := tidepool.Pipe(0)
	face := func(a string, end *tidepool.PipeEnd) tidepool.Config {
		return tidepool.Config{Interfaces: []tidepool.Interface{{Addr: prefix(a), Link: end}}}
	}
	a, b := open(t, face("2001:db8::1/64", x)), open(t, face("2001:db8::2/64", y))
	assert.Equal(t, []netip.Addr{addr("2001:db8::1")}, a.Addrs())
	l, err := a.Listen("tcp", ":80")
	require.NoError(t, err)
	defer l.Close()
	client, err := b.Dial("tcp", "[2001:db8::1]:80")
	require.NoError(t, err)
	defer client.Close()
	_, err = b.Dial("tcp", "10.0.0.1:80")
	require.ErrorIs(t, err, syscall.EHOSTUNREACH)
	self, err := a.Dial("tcp", ":80")
	require.NoError(t, err)
	assert.Equal(t, "[2001:db8::1]:80", self.RemoteAddr().String())
	require.NoError(t, self.Close())
}

// lookup returns a Lookup that knows only the name "b".
func lookup(list ...string) func(context.Context, string, string) ([]netip.Addr, error) {
	return func(_ context.Context, network, host string) (addrs []netip.Addr, err error) {
		if host != "b" {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		for _, a := range list {
			addrs = append(addrs, addr(a))
		}
		return addrs, nil
	}
}

// RFC 8305 §5 and §8: the node tries the next address 250 ms after the last one, uses the first
// connection and ends the other attempts. RFC 6724 §6 and RFC 8305 §4 order the addresses.
func TestHappyEyeballs(t *testing.T) {
	for _, row := range []struct {
		name  string
		names []string
		to    string
		after time.Duration
	}{
		{"IPv6 first", []string{"10.0.0.1", "2001:db8::1"}, "[2001:db8::1]:80", 0},
		{"a silent address", []string{"10.0.0.1", "2001:db8::9"}, "10.0.0.1:80", 250 * time.Millisecond},
		{"families alternate", []string{"2001:db8::8", "2001:db8::9", "10.0.0.1"}, "10.0.0.1:80", 250 * time.Millisecond},
		{"two silent ones", []string{"2001:db8::9", "10.0.0.9", "2001:db8::1"}, "[2001:db8::1]:80", 500 * time.Millisecond},
		{"no route", []string{"2001:db9::1", "10.0.0.1"}, "10.0.0.1:80", 0},
		{"a closed port", []string{"2001:db8::2", "10.0.0.1"}, "10.0.0.1:80", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := tidepool.Config{Lookup: lookup(row.names...)}
				a, b := dualPair(t, cfg)
				l, err := a.Listen("tcp", ":80")
				require.NoError(t, err)
				start := time.Now()
				c, err := b.Dial("tcp", "b:80")
				require.NoError(t, err)
				assert.Equal(t, row.to, c.RemoteAddr().String())
				assert.Equal(t, row.after, time.Since(start))
				accepted, err := l.Accept()
				require.NoError(t, err)
				require.NoError(t, accepted.Close())
				_, err = io.ReadAll(c)
				require.NoError(t, err)
				require.NoError(t, c.Close())
				require.NoError(t, l.Close())
				require.NoError(t, a.Close())
				require.NoError(t, b.Close())
			})
		})
	}
}

// If all addresses fail, the error is that of the first one, as in package net. The timeout limits
// all attempts together.
func TestHappyEyeballsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := dualPair(t, tidepool.Config{Lookup: lookup("10.0.0.1", "2001:db8::1")})
		_, err := b.Dial("tcp", "b:80")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		assert.ErrorContains(t, err, "dial tcp [2001:db8::1]:80")
		_, err = b.Dial("tcp4", "b:80")
		assert.ErrorContains(t, err, "dial tcp 10.0.0.1:80")
		d := tidepool.Dialer{Node: b, LocalAddr: netip.MustParseAddrPort("10.0.0.2:0")}
		_, err = d.Dial("tcp", "b:80")
		assert.ErrorContains(t, err, "10.0.0.1:80: connection refused")
		_, err = b.Dial("tcp", "c:80")
		assert.ErrorContains(t, err, "no such host")
	})
	synctest.Test(t, func(t *testing.T) {
		_, b := dualPair(t, tidepool.Config{Lookup: lookup("10.0.0.8", "2001:db8::8")})
		d := tidepool.Dialer{Node: b, Timeout: time.Second}
		start := time.Now()
		_, err := d.Dial("tcp", "b:80")
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		assert.True(t, timeout.Timeout())
		assert.Equal(t, time.Second, time.Since(start))
	})
}

// A wrong address of a Config names the field.
func TestOpenErrorsOfIPv6(t *testing.T) {
	for say, change := range map[string]func(*tidepool.Config){
		"interface if0: Addr invalid Prefix: must be an address": func(c *tidepool.Config) {
			c.Interfaces[0].Addr = netip.Prefix{}
		},
		"interface if0: IPv6 address 10.0.1.1/24 is IPv4": func(c *tidepool.Config) {
			c.Interfaces[0].IPv6 = []netip.Prefix{prefix("10.0.1.1/24")}
		},
		"interface if0: Addr 2001:db8::/64 is the address of all routers": func(c *tidepool.Config) {
			c.Interfaces[0].IPv6 = []netip.Prefix{prefix("2001:db8::/64")}
		},
		"stack: interface if0: MTU 600: must be 1280 to 65535": func(c *tidepool.Config) {
			c.Interfaces[0].MTU = 600
			c.Interfaces[0].IPv6 = []netip.Prefix{prefix("2001:db8::1/64")}
		},
		"interface if0: neighbor 2001:db8::2 is of a family": func(c *tidepool.Config) {
			c.Interfaces[0].Neighbors = []tidepool.Neighbor{{Addr: addr("2001:db8::2")}}
		},
		"route ::/0 via 10.0.0.2: must be a prefix and a next hop of the same family": func(c *tidepool.Config) {
			c.Routes = []tidepool.Route{{Prefix: prefix("::/0"), Via: addr("10.0.0.2")}}
		},
		"route ::/0: next hop fe80::2 needs its interface: fe80::2%NAME": func(c *tidepool.Config) {
			c.Routes = []tidepool.Route{{Prefix: prefix("::/0"), Via: addr("fe80::2")}}
		},
		"route ::/0: next hop fe80::2%if7 is not in an interface's network": func(c *tidepool.Config) {
			c.Routes = []tidepool.Route{{Prefix: prefix("::/0"), Via: addr("fe80::2%if7")}}
		},
	} {
		_, end := tidepool.Pipe(0)
		cfg := host(tidepool.Config{}, "10.0.0.1/24", "", end)
		change(&cfg)
		_, err := tidepool.Open(cfg)
		require.ErrorContains(t, err, "tidepool: bad configuration: "+say)
	}
}

// A socket of "ip6:…" receives IPv6 only, and fills in the checksum of ICMPv6 (RFC 3542 §3.1).
func TestIPConnsOfIPv6(t *testing.T) {
	a, b := dualPair(t, tidepool.Config{})
	six, err := a.ListenPacket("ip6:89", "")
	require.NoError(t, err)
	defer six.Close()
	require.NoError(t, six.SetDeadline(time.Now().Add(patience)))
	for _, row := range [][2]string{{"ip4:89", "10.0.0.1"}, {"ip6:89", "2001:db8::1"}} {
		out, err := b.ListenPacket(row[0], "")
		require.NoError(t, err)
		defer out.Close()
		_, err = out.WriteTo([]byte(row[0]), &net.IPAddr{IP: net.ParseIP(row[1])})
		require.NoError(t, err)
	}
	buf := make([]byte, 100)
	n, from, err := six.ReadFrom(buf)
	require.NoError(t, err)
	assert.Equal(t, "ip6:89 2001:db8::2", string(buf[:n])+" "+from.String())
	_, err = six.WriteTo(nil, &net.IPAddr{IP: net.IPv4(10, 0, 0, 2)})
	require.ErrorContains(t, err, "not an IPv6 address")

	ping, err := b.ListenPacket("ip6:ipv6-icmp", "")
	require.NoError(t, err)
	defer ping.Close()
	require.NoError(t, ping.SetDeadline(time.Now().Add(patience)))
	echo := []byte{128, 0, 0, 0, 1, 2, 3, 4, 'h', 'i'} // RFC 4443 §4.1, without a checksum
	_, err = ping.WriteTo(echo, &net.IPAddr{IP: net.ParseIP("2001:db8::1")})
	require.NoError(t, err)
	n, from, err = ping.ReadFrom(buf)
	require.NoError(t, err)
	assert.Equal(t, "2001:db8::1", from.String())
	assert.Equal(t, []byte{1, 2, 3, 4, 'h', 'i'}, buf[4:n])
	assert.Equal(t, byte(129), buf[0], "an echo reply")
}

// Ping and Traceroute take addresses of both families, and names.
func TestPingAndTracerouteOverIPv6(t *testing.T) {
	_, _, c := line(t, tidepool.Config{Lookup: lookup("2001:db8::1", "10.0.0.1")})
	for _, host := range []string{"2001:db8::1", "b"} {
		result, err := c.Ping(t.Context(), host, tidepool.PingOptions{})
		require.NoError(t, err)
		require.Len(t, result.Replies, 1)
		assert.Equal(t, addr("2001:db8::1"), result.Replies[0].From)
		require.NoError(t, result.Replies[0].Err)
		hops, err := c.Traceroute(t.Context(), host, tidepool.TracerouteOptions{Queries: 1})
		require.NoError(t, err)
		require.Len(t, hops, 2)
		assert.Equal(t, addr("2001:db8:1::1"), hops[0].Probes[0].From)
		assert.Equal(t, addr("2001:db8::1"), hops[1].Probes[0].From)
	}
	_, err := c.Ping(t.Context(), "2001:db9::1", tidepool.PingOptions{})
	require.NoError(t, err, "the default route")
	_, err = c.Ping(t.Context(), "::", tidepool.PingOptions{})
	require.ErrorContains(t, err, "ping ip6:ipv6-icmp ::")
}

// A socket joins groups of both families on the link of an interface.
func TestGroupsOfBothFamilies(t *testing.T) {
	a, b := dualPair(t, tidepool.Config{})
	in, err := a.ListenUDP(netip.AddrPortFrom(netip.Addr{}, 5353))
	require.NoError(t, err)
	defer in.Close()
	out, err := b.ListenUDP(netip.AddrPort{})
	require.NoError(t, err)
	defer out.Close()
	require.NoError(t, in.SetDeadline(time.Now().Add(patience)))
	buf := make([]byte, 10)
	for _, group := range []string{"224.0.0.251", "ff02::fb"} {
		require.NoError(t, in.JoinGroup("if0", addr(group)))
		require.ErrorIs(t, in.JoinGroup("if0", addr(group)), syscall.EADDRINUSE)
		_, err := out.WriteToAddrPort([]byte(group), netip.AddrPortFrom(addr(group), 5353))
		require.NoError(t, err)
		n, from, err := in.ReadFromAddrPort(buf[:])
		require.NoError(t, err)
		assert.Equal(t, group[:n], string(buf[:n]))
		assert.Equal(t, addr(group).Is4(), from.Addr().Is4())
		require.NoError(t, in.LeaveGroup("if0", addr(group)))
	}
	require.ErrorIs(t, in.JoinGroup("if0", addr("2001:db8::1")), syscall.EINVAL)
}

// Publish leads from either loopback address of the machine to hosts of either family, and Expose
// from all addresses of the node.
func TestPortForwardsOfBothFamilies(t *testing.T) {
	a, b := dualPair(t, tidepool.Config{})
	service, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		service, err = net.Listen("tcp4", "127.0.0.1:0") // a machine without IPv6
	}
	require.NoError(t, err)
	defer service.Close()
	exposed, err := a.Expose("tcp", 80, service.Addr().String())
	require.NoError(t, err)
	defer exposed.Close()
	on, _, err := net.SplitHostPort(service.Addr().String())
	require.NoError(t, err)
	for _, to := range []string{"10.0.0.1:80", "[2001:db8::1]:80"} {
		published, err := b.Publish("tcp", net.JoinHostPort(on, "0"), to)
		require.NoError(t, err)
		client, err := net.Dial("tcp", published.Addr().String())
		require.NoError(t, err)
		server, err := service.Accept()
		require.NoError(t, err)
		_, err = server.Write([]byte("through"))
		require.NoError(t, err)
		require.NoError(t, server.Close())
		got, err := io.ReadAll(client)
		require.NoError(t, err)
		assert.Equal(t, "through", string(got), to)
		require.NoError(t, client.Close())
		require.NoError(t, published.Close())
	}
}

// Forward and ForwardUDP receive packets to IPv6 addresses.
func TestForwardOfIPv6(t *testing.T) {
	a, b := dualPair(t, tidepool.Config{})
	require.NoError(t, a.Forward(func(r *tidepool.Request) {
		c, err := r.Accept()
		if assert.NoError(t, err) {
			_, err = io.WriteString(c, r.Local().String())
			assert.NoError(t, err)
			assert.NoError(t, c.Close())
		}
	}))
	require.NoError(t, a.ForwardUDP(func(r *tidepool.UDPRequest) {
		c, err := r.Accept()
		if assert.NoError(t, err) {
			_, err = io.WriteString(c, r.Local().String())
			assert.NoError(t, err)
		}
	}))
	for _, network := range []string{"tcp", "udp"} {
		c, err := b.Dial(network, "[2001:db8::1]:7")
		require.NoError(t, err)
		_, err = c.Write([]byte("ask"))
		require.NoError(t, err)
		buf := make([]byte, 100)
		n, err := c.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, "[2001:db8::1]:7", string(buf[:n]))
		require.NoError(t, c.Close())
	}
}

// RCP runs over both families.
func TestRCPOverBothFamilies(t *testing.T) {
	a, b := dualPair(t, tidepool.Config{})
	l, err := a.Listen("rcp", ":7")
	require.NoError(t, err)
	defer l.Close()
	for _, to := range []string{"10.0.0.1:7", "[2001:db8::1]:7"} {
		c, err := b.Dial("rcp", to)
		require.NoError(t, err)
		accepted, err := l.Accept()
		require.NoError(t, err)
		_, err = c.Write([]byte("hello"))
		require.NoError(t, err)
		buf := make([]byte, 10)
		n, err := accepted.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(buf[:n]))
		assert.Equal(t, to, c.RemoteAddr().String())
		require.NoError(t, c.Close())
		require.NoError(t, accepted.Close())
	}
}

// RFC 4862 §4, RFC 4861 §6.2: a host with Auto gets an address and a default route from a router
// with Advertise, over a link that the program implements. With a seed, the address is the same
// each time.
func TestAHostGetsItsAddressFromARouter(t *testing.T) {
	six := func(s string) []netip.Prefix { return []netip.Prefix{prefix(s)} }
	run := func(t *testing.T, seed uint64) (own netip.Addr) {
		synctest.Test(t, func(t *testing.T) {
			a, b := tidepool.Pipe(0)
			c, d := tidepool.Pipe(0)
			router := open(t, tidepool.Config{Router: true, Interfaces: []tidepool.Interface{
				{IPv6: six("2001:db8:1::1/64"), Link: b, Advertise: true},
				{IPv6: six("2001:db8:2::1/64"), Link: c},
			}})
			server := open(t, tidepool.Config{
				Interfaces: []tidepool.Interface{{IPv6: six("2001:db8:2::2/64"), Link: d}},
				Routes:     []tidepool.Route{{Prefix: prefix("::/0"), Via: addr("2001:db8:2::1")}},
			})
			host := open(t, tidepool.Config{
				Seed: seed, Interfaces: []tidepool.Interface{{Link: a, Auto: true}},
			})
			assert.Empty(t, host.Addrs())
			time.Sleep(10 * time.Second)
			require.Len(t, host.Addrs(), 1)
			own = host.Addrs()[0]
			assert.True(t, prefix("2001:db8:1::/64").Contains(own), own)
			ln, err := server.Listen("tcp", ":80")
			require.NoError(t, err)
			conn, err := host.Dial("tcp", "[2001:db8:2::2]:80")
			require.NoError(t, err)
			accepted, err := ln.Accept()
			require.NoError(t, err)
			assert.Equal(t, own.String(), accepted.RemoteAddr().(*net.TCPAddr).IP.String())
			require.NoError(t, conn.Close())
			assert.Len(t, router.Addrs(), 2)
			require.NoError(t, host.Close())
			assert.Empty(t, host.Addrs())
		})
		return own
	}
	first := run(t, 1)
	assert.Equal(t, first, run(t, 1))
	assert.NotEqual(t, first, run(t, 2))
	random := run(t, 0)
	assert.NotEqual(t, random, run(t, 0))
}

func TestBadDiscovery(t *testing.T) {
	near := []tidepool.Neighbor{{Addr: addr("2001:db8::2"), UDP: "127.0.0.1:9"}}
	six := []netip.Prefix{prefix("2001:db8::1/64")}
	for want, f := range map[string]tidepool.Interface{
		"Auto and Advertise need a Link or a TUN device": {IPv6: six, UDP: "127.0.0.1:10", Neighbors: near, Auto: true},
		"Auto and Advertise cannot be used together":     {IPv6: six, TUN: "tide0", Auto: true, Advertise: true},
		"Advertise needs an IPv6 network":                {Addr: prefix("10.0.0.1/24"), TUN: "tide0", Advertise: true},
		"Addr invalid Prefix: must be an address":        {TUN: "tide0"},
	} {
		_, err := tidepool.Open(tidepool.Config{Interfaces: []tidepool.Interface{f}})
		require.ErrorContains(t, err, want)
	}
}
