package tidepool_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
	"github.com/tidepool-net/tidepool/internal/link"
)

func TestErrorsAreTheSystems(t *testing.T) {
	a, b := pair(t, tidepool.Config{Hosts: map[string]netip.Addr{"b": addr("10.0.0.2")}})
	_, err := a.Dial("tcp", "10.0.0.2:9")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, "dial tcp 10.0.0.2:9: connection refused", err.Error())
	l, err := b.Listen("tcp", ":80")
	require.NoError(t, err)
	_, err = b.Listen("tcp", ":80")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, l.(*tidepool.Listener).SetDeadline(time.Unix(1, 0)))
	_, err = l.Accept()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, l.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.DialContext(ctx, "tcp", "10.0.0.77:80")
	require.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = a.DialContext(ctx, "tcp", "10.0.0.77:80")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())
}

func TestAddressesThatCannotBe(t *testing.T) {
	a, b := pair(t, tidepool.Config{Hosts: map[string]netip.Addr{"b": addr("10.0.0.2")}})
	for _, bad := range []struct{ network, address, say string }{
		{"tcp6", "10.0.0.2:80", "unknown network tcp6"},
		{"unix", "socket", "unknown network unix"},
		{"tcp", "10.0.0.2", "missing port"},
		{"tcp", "10.0.0.2:no-such-service", "unknown port"},
		{"tcp", "nobody:80", "no such host"},
		{"tcp", "[::1]:80", "not an IPv4 address"},
	} {
		_, err := a.Dial(bad.network, bad.address)
		require.ErrorContains(t, err, bad.say)
		_, err = a.Listen(bad.network, bad.address)
		require.ErrorContains(t, err, bad.say)
		_, err = a.ListenPacket(bad.network, bad.address)
		require.Error(t, err)
	}
	var dns *net.DNSError
	_, err := a.Dial("udp", "nobody:80")
	require.ErrorAs(t, err, &dns)
	l, err := b.Listen("tcp4", "b:http")
	require.NoError(t, err)
	defer l.Close()
	assert.Equal(t, "10.0.0.2:80", l.Addr().String())
	c, err := a.Dial("tcp4", "b:http")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	c, err = b.Dial("tcp", ":80") // the node itself
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestConfigsThatCannotBe(t *testing.T) {
	end := func() *tidepool.PipeEnd { a, _ := tidepool.Pipe(0); return a }
	face := func(change func(*tidepool.Interface)) tidepool.Config {
		f := tidepool.Interface{Addr: prefix("10.0.0.1/24"), Link: end()}
		change(&f)
		return tidepool.Config{Interfaces: []tidepool.Interface{f}}
	}
	for say, cfg := range map[string]tidepool.Config{
		"bad configuration: Interfaces": {},
		"not IPv4":                      face(func(f *tidepool.Interface) { f.Addr = prefix("fe80::1/64") }),
		"MTU 60":                        face(func(f *tidepool.Interface) { f.MTU = 60 }),
		"want a Link":                   face(func(f *tidepool.Interface) { f.Link = nil }),
		"a share of 2":                  face(func(f *tidepool.Interface) { f.Impair.Loss = 2 }),
		"jitter":                        face(func(f *tidepool.Interface) { f.Impair.Jitter = 1 }),
		"Kernel":                        face(func(f *tidepool.Interface) { f.Kernel = addr("10.0.0.2") }),
		"Link and UDP are given": face(func(f *tidepool.Interface) {
			f.UDP = "127.0.0.1:1"
		}),
		"port": face(func(f *tidepool.Interface) { f.Link, f.UDP = nil, "127.0.0.1:x" }),
		"neighbor": face(func(f *tidepool.Interface) {
			f.Neighbors = []tidepool.Neighbor{{Addr: addr("10.0.0.2"), UDP: "127.0.0.1:1"}}
		}),
		"two interfaces are called if1": {Interfaces: []tidepool.Interface{
			{Name: "if1", Addr: prefix("10.0.0.1/24"), Link: end()},
			{Addr: prefix("10.1.0.1/24"), Link: end()},
		}},
		"next hop": {
			Interfaces: []tidepool.Interface{{Addr: prefix("10.0.0.1/24"), Link: end()}},
			Routes:     []tidepool.Route{{Prefix: prefix("0.0.0.0/0"), Via: addr("10.1.0.1")}},
		},
		"ECN": {
			Interfaces: []tidepool.Interface{{Addr: prefix("10.0.0.1/24"), Link: end()}},
			TCP:        tidepool.TCP{ECN: "maybe"},
		},
		"vegas": {
			Interfaces: []tidepool.Interface{{Addr: prefix("10.0.0.1/24"), Link: end()}},
			TCP:        tidepool.TCP{CongestionControl: "vegas"},
		},
		"cannot obey a Clock": {
			Interfaces: []tidepool.Interface{{Addr: prefix("10.0.0.1/24"), UDP: "127.0.0.1:5999"}},
			Clock:      &tidepool.Clock{},
		},
	} {
		_, err := tidepool.Open(cfg)
		require.ErrorContains(t, err, say)
		if say != "cannot obey a Clock" {
			require.ErrorContains(t, err, "tidepool: bad configuration: ")
		}
		for i := range cfg.Interfaces {
			if l := cfg.Interfaces[i].Link; l != nil {
				_, err := l.Read(make([]byte, 1))
				require.Error(t, err, "%s: a link that Open got is closed when it fails", say)
			}
		}
	}
}

// An end that has a node stays that node's.
func TestALinkHasOneNode(t *testing.T) {
	x, y := tidepool.Pipe(0)
	a := open(t, host(tidepool.Config{}, "10.0.0.1/24", "", x))
	_, err := tidepool.Open(host(tidepool.Config{}, "10.0.0.3/24", "", x))
	require.ErrorContains(t, err, "has a node already")
	_, err = x.Write([]byte{1})
	require.ErrorContains(t, err, "has a node already")
	b := open(t, host(tidepool.Config{}, "10.0.0.2/24", "", y))
	client, server := dial(t, b, a, "10.0.0.1:80")
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())
}

func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lnx")
	_, err := tidepool.OpenFile(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("interface if0\n"), 0o600))
	_, err = tidepool.OpenFile(path)
	require.ErrorContains(t, err, "a.lnx:1")
	ports, err := link.FreePorts(1)
	require.NoError(t, err)
	text := fmt.Sprintf("interface if0 10.0.0.1/24 127.0.0.1:%d\n", ports[0])
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	n, err := tidepool.OpenFile(path)
	require.NoError(t, err)
	assert.Equal(t, []netip.Addr{addr("10.0.0.1")}, n.Addrs())
	require.NoError(t, n.Close())
}
