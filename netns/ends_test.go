package netns

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// RFC 6598 §7: links have addresses from 100.64.0.0/10. A nested link has the network after that of
// the link around it.
func TestFreeLink(t *testing.T) {
	e, err := freeLinkBehind(nil)
	require.NoError(t, err)
	assert.Equal(t, "100.64.0.1", e.Gateway.String())
	assert.Equal(t, "100.64.0.2", e.Program.String())
	e, err = freeLinkBehind([]netip.Addr{netip.MustParseAddr("10.0.0.1"), e.Program})
	require.NoError(t, err)
	assert.Equal(t, "100.64.0.5", e.Gateway.String())
	assert.False(t, e.Program6.IsValid(), "this machine has no IPv6")
	_, err = freeLinkBehind([]netip.Addr{netip.MustParseAddr("100.127.255.254")})
	assert.ErrorContains(t, err, "no free addresses after 100.127.255.254")
}

// RFC 4193 §3.2: the IPv6 addresses of links are unique local addresses with a random global ID. A
// link has them if the machine has IPv6.
func TestLinkWithIPv6(t *testing.T) {
	e, err := freeLinkBehind([]netip.Addr{
		netip.MustParseAddr("100.64.0.2"), netip.MustParseAddr("::1"), netip.MustParseAddr("fe80::2"),
	})
	require.NoError(t, err)
	assert.Len(t, e.Kernel(), 1)
	e, err = freeLinkBehind([]netip.Addr{netip.MustParseAddr("2001:db8::2")})
	require.NoError(t, err)
	assert.Equal(t, "[100.64.0.2/30 fdb6:2c0a:91e5::6440:2/126]", fmt.Sprint(e.Kernel()))
	assert.Equal(t, "[100.64.0.1 fdb6:2c0a:91e5::6440:1]", fmt.Sprint(e.Gateways()))
}

// Programs reach name servers at the machine's loopback through the gateway (RFC 1035 §4.2: port
// 53).
func TestResolvConf(t *testing.T) {
	t.Parallel()
	e, err := freeLinkBehind(nil)
	require.NoError(t, err)
	for machine, want := range map[string]struct{ text, dns string }{
		"search example.org\nnameserver 127.0.0.53\noptions edns0\n": {
			"search example.org\nnameserver 100.64.0.1\noptions edns0\n", "127.0.0.53:53",
		},
		"nameserver 192.0.2.53\nnameserver 2001:db8::53\n": {
			"nameserver 192.0.2.53\n", "invalid AddrPort",
		},
		"nameserver fe80::1%eth0\n": { // the program has no eth0
			"nameserver 100.64.0.1\n", "[fe80::1%eth0]:53",
		},
		"": {"nameserver 100.64.0.1\n", "invalid AddrPort"},
	} {
		text, dns := e.ResolvConf(machine)
		assert.Equal(t, want.text, text)
		assert.Equal(t, want.dns, dns.String())
	}
	e, err = freeLinkBehind([]netip.Addr{netip.MustParseAddr("2001:db8::2")})
	require.NoError(t, err)
	text, _ := e.ResolvConf("nameserver 2001:db8::53\n")
	assert.Equal(t, "nameserver 2001:db8::53\n", text)
}

// Programs of a host look up names without a dot in the host's zone.
func TestResolvConfOfAHost(t *testing.T) {
	t.Parallel()
	h := Host{Zone: "lab.test"}
	assert.Contains(t, h.resolvConf(), "search .\n")
	h.Servers = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	assert.Equal(t, "search lab.test\noptions timeout:2 attempts:2\nnameserver 10.0.0.1\n", h.resolvConf())
}
