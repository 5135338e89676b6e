//go:build linux

package interop_test

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
)

// The kernel configures an address from a node's advertisements. It pings the node and loads a
// page.
func TestTheKernelConfiguresItselfFromANode(t *testing.T) {
	need(t, "curl", "ping")
	family{v6: true}.report(t, &row{peer: "Linux", scenario: "SLAAC from our router advertisements"})
	b := &bed{t: t}
	b.namespace()
	n := b.openText("G", "interface tun0 2001:db8:7::1/64 tun:"+device+"\nadvertise tun0\n", "")
	require.Eventually(t, func() bool {
		list := b.must(b.command("ip", "-6", "address", "show", "dev", device, "scope", "global"))
		return strings.Contains(list, "inet6 2001:db8:7:") && strings.Contains(list, "dynamic") &&
			!strings.Contains(list, "tentative")
	}, patience, 50*time.Millisecond)
	assert.Contains(t, b.must(b.command("ping", "-6", "-c", "3", "-i", "0.2", "2001:db8:7::1")),
		"3 received")

	l, err := n.Node.TCP.Listen(netip.MustParseAddrPort("[::]:8080"), 0)
	require.NoError(t, err)
	server := &http.Server{
		ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("a page"))
		}),
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	assert.Equal(t, "a page", b.must(b.command("curl", "-6", "-sS", "--fail", "http://[2001:db8:7::1]:8080/")))
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-done, http.ErrServerClosed)
	info := testenv.Ask(t, n, control.Interfaces{})[0]
	require.Len(t, info.Addresses, 2)
	var found bool
	for _, nb := range testenv.Ask(t, n, control.Neighbors{}) {
		found = found || netip.MustParsePrefix("2001:db8:7::/64").Contains(nb.Addr) && nb.State != ""
	}
	assert.True(t, found, "the kernel's address is a neighbor with a state")
}

// advertise sends a router advertisement from the kernel's end. The kernel adds the checksum to the
// body.
func (b *bed) advertise(prefix netip.Prefix) {
	b.t.Helper()
	d := icmp.Discovery{Type: icmp.TypeRouterAdvert6, Advert: icmp.Advert{
		HopLimit: 64, Lifetime: time.Hour, Prefixes: []icmp.PrefixInfo{{
			Prefix: prefix, OnLink: true, Autonomous: true, Valid: 2 * time.Hour, Preferred: time.Hour,
		}},
	}}
	m := d.Message()
	all := netip.MustParseAddr("ff02::1")
	require.NoError(b.t, b.inside(func() error {
		link, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		s, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
		if err != nil {
			return err
		}
		defer unix.Close(s)
		err = unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255)
		if err != nil {
			return err
		}
		return unix.Sendto(s, m.Append(nil, all, all), 0,
			&unix.SockaddrInet6{Addr: all.As16(), ZoneId: uint32(link.Index)})
	}))
}

// A node configures an address and a default route from the kernel's advertisements. The test sends
// these itself, without radvd.
func TestANodeConfiguresItselfFromTheKernel(t *testing.T) {
	need(t, "ping")
	family{v6: true}.report(t, &row{peer: "Linux", scenario: "SLAAC from the kernel's router advertisements"})
	b := &bed{t: t}
	b.namespace()
	n := b.openText("H", "interface tun0 fe80::1/64 tun:"+device+"\naddress tun0 auto\n", "")
	b.must(b.command("ip", "-6", "address", "add", "2001:db8:9::1/64", "dev", device))
	far := netip.MustParseAddr("2001:db8:10::1") // the default route leads there
	b.must(b.command("ip", "-6", "address", "add", far.String()+"/128", "dev", "lo"))
	prefix := netip.MustParsePrefix("2001:db8:9::/64")
	own := netip.Addr{}
	require.Eventually(t, func() bool {
		list := testenv.Ask(t, n, control.Interfaces{})[0].IPv6
		if own = list[len(list)-1].Addr(); prefix.Contains(own) {
			return true
		}
		b.advertise(prefix)
		return false
	}, patience, 200*time.Millisecond)
	assert.Contains(t, b.must(b.command("ping", "-6", "-c", "3", "-i", "0.2", own.String())), "3 received")
	stats := testenv.Ask(t, n, control.Ping{Addr: far, Count: 3, Interval: 10 * time.Millisecond})
	assert.Equal(t, 3, stats.Received)
	var state string
	for _, a := range testenv.Ask(t, n, control.Interfaces{})[0].Addresses {
		if a.Prefix.Addr() == own {
			state = a.State
			assert.Positive(t, a.Valid)
			assert.Less(t, a.Preferred, a.Valid)
		}
	}
	assert.Equal(t, "preferred", state)
}

// RFC 3810 §6: a multicast router of another implementation learns from the answer to its query
// that a socket has joined a group, and later that the socket has left the group.
func TestScapyLearnsGroups(t *testing.T) {
	need(t)
	with, f := python(t), family{v6: true}
	const group, isExclude, toInclude = "ff05::1:3", "2", "3"
	f.report(t, &row{peer: "scapy", scenario: "MLDv2: a group joined, queried, left"})
	b := &bed{family: f, t: t}
	b.namespace()
	n := b.openText("A", "interface tun0 10.8.0.1/24 tun:"+device+" kernel "+kernelIP+"\n", "")
	pc, err := n.Node.Packets.Listen(netip.MustParseAddrPort("[::]:5000"))
	require.NoError(t, err)
	require.NoError(t, pc.Join("tun0", netip.MustParseAddr(group)))
	records := b.must(b.command(with, "testdata/mld.py", device, group, isExclude))
	assert.Equal(t, "2\n", records, "and that of its solicited nodes")
	router := b.start(b.command(with, "testdata/mld.py", device, group, toInclude))
	// leave again each time, because the router may not listen yet
	require.Eventually(t, func() bool {
		select {
		case <-router.done:
			return true
		default:
			assert.NoError(t, pc.Leave("tun0", netip.MustParseAddr(group)))
			assert.NoError(t, pc.Join("tun0", netip.MustParseAddr(group)))
			return false
		}
	}, patience, 500*time.Millisecond)
	router.wait()
	require.NoError(t, pc.Close())
}
