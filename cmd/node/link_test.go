package main

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/operator"
)

// RFC 6598 §7: the addresses of links are from 100.64.0.0/10. A nested link has the network behind
// that of the link around it.
func TestFreeLink(t *testing.T) {
	e, err := freeLinkBehind(nil)
	require.NoError(t, err)
	assert.Equal(t, "100.64.0.1", e.gateway.String())
	assert.Equal(t, "100.64.0.2", e.program.String())
	e, err = freeLinkBehind([]netip.Addr{netip.MustParseAddr("10.0.0.1"), e.program})
	require.NoError(t, err)
	assert.Equal(t, "100.64.0.5", e.gateway.String())
	assert.False(t, e.program6.IsValid(), "this machine has no IPv6")
	_, err = freeLinkBehind([]netip.Addr{netip.MustParseAddr("100.127.255.254")})
	assert.ErrorContains(t, err, "no free network after 100.127.255.254")
}

// RFC 4193 §3.2: the IPv6 addresses of links are unique local ones with a random global ID. A link
// has them if the machine has IPv6 behind its own link.
func TestLinkWithIPv6(t *testing.T) {
	e, err := freeLinkBehind([]netip.Addr{
		netip.MustParseAddr("100.64.0.2"), netip.MustParseAddr("::1"), netip.MustParseAddr("fe80::2"),
	})
	require.NoError(t, err)
	assert.Len(t, e.kernel(), 1)
	e, err = freeLinkBehind([]netip.Addr{netip.MustParseAddr("2001:db8::2")})
	require.NoError(t, err)
	assert.Equal(t, "[100.64.0.2/30 fdb6:2c0a:91e5::6440:2/126]", fmt.Sprint(e.kernel()))
	assert.Equal(t, "[100.64.0.1 fdb6:2c0a:91e5::6440:1]", fmt.Sprint(e.gateways()))
	o := linkOptions{mtu: defaultLinkMTU}
	file, err := o.file(e)
	require.NoError(t, err)
	assert.Len(t, file.Interfaces[0].Addrs(), 2)
	text, _ := e.resolvConf("nameserver 2001:db8::53\n")
	assert.Equal(t, "nameserver 2001:db8::53\n", text)
}

// Name servers at the machine's loopback are asked through the gateway (RFC 1035 §4.2: port 53).
func TestResolvConfOfALink(t *testing.T) {
	e, err := freeLinkBehind(nil)
	require.NoError(t, err)
	text, dns := e.resolvConf("search example.org\nnameserver 127.0.0.53\noptions edns0\n")
	assert.Equal(t, "search example.org\nnameserver 100.64.0.1\noptions edns0\n", text)
	assert.Equal(t, "127.0.0.53:53", dns.String())
	text, dns = e.resolvConf("nameserver 192.0.2.53\nnameserver 2001:db8::53\n")
	assert.Equal(t, "nameserver 192.0.2.53\n", text)
	assert.False(t, dns.IsValid())
	text, dns = e.resolvConf("nameserver fe80::1%eth0\n") // the program has no eth0
	assert.Equal(t, "nameserver 100.64.0.1\n", text)
	assert.Equal(t, "[fe80::1%eth0]:53", dns.String())
	text, _ = e.resolvConf("")
	assert.Equal(t, "nameserver 100.64.0.1\n", text)
}

// Programs of a host look names without a dot up in its zone.
func TestResolvConfOfAHost(t *testing.T) {
	in := &operator.Inside{}
	assert.Contains(t, resolvOf(in), "search .\n")
	in.DNS.Servers = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	assert.Equal(t, "search internal\noptions timeout:2 attempts:2\nnameserver 10.0.0.1\n", resolvOf(in))
	in.DNS.Zone = "lab.test"
	assert.Contains(t, resolvOf(in), "search lab.test\n")
}

func TestLinkWords(t *testing.T) {
	both, err := linkWords([]string{"delay", "20ms", "uplink", "loss", "1%", "downlink", "rate", "1mbit"})
	require.NoError(t, err)
	assert.Equal(t, 20*time.Millisecond, both[uplink].Delay)
	assert.Equal(t, 20*time.Millisecond, both[downlink].Delay)
	assert.Contains(t, both[uplink].String(), "loss 1%")
	assert.Nil(t, both[downlink].Loss)
	assert.Nil(t, both[uplink].Rate)
	assert.NotNil(t, both[downlink].Rate)
	_, err = linkWords([]string{"delya", "20ms"})
	assert.ErrorContains(t, err, `"delya" is not an impairment`)
}

// mahimahi's command lines are accepted as written.
func TestMahimahiLines(t *testing.T) {
	both, err := mahimahiLink([]string{"mm-delay", "20"})
	require.NoError(t, err)
	assert.Equal(t, 20*time.Millisecond, both[uplink].Delay)
	assert.Equal(t, 20*time.Millisecond, both[downlink].Delay)
	both, err = mahimahiLink([]string{"mm-loss", "uplink", "0.1"})
	require.NoError(t, err)
	assert.Contains(t, both[uplink].String(), "loss 10%")
	assert.Nil(t, both[downlink].Loss)
	_, err = mahimahiLink([]string{"mm-loss", "sideways", "0.1"})
	assert.ErrorContains(t, err, "sideways")
	assert.Equal(t, []string{"mm-delay", "5", "ls"}, mahimahiArgs([]string{"/bin/mm-delay", "5", "ls"}))
	assert.Equal(t, []string{"run", "A.lnx"}, mahimahiArgs([]string{"bin/node", "run", "A.lnx"}))
}
