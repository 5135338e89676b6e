package tidepool_test

import (
	"fmt"
	"log"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

func TestRoutesAtRunTime(t *testing.T) {
	_, left := tidepool.Pipe(0)
	_, right := tidepool.Pipe(0)
	n := open(t, tidepool.Config{
		Interfaces: []tidepool.Interface{
			{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: left},
			{Addr: netip.MustParsePrefix("10.1.0.1/24"), Link: right},
		},
		Router: true,
		Routes: []tidepool.Route{
			{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.0.0.9")},
			{
				Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.1.0.9"),
				Metric: 5,
			},
			{Prefix: netip.MustParsePrefix("10.9.0.0/16"), Kind: "unreachable"},
		},
	})
	table := func() (list []string) {
		routes, err := n.Routes()
		require.NoError(t, err)
		for _, r := range routes {
			via := r.Kind
			if r.Via.IsValid() {
				via = r.Via.String()
			}
			list = append(list, r.Prefix.String()+" "+via+" "+r.Interface+" "+r.Origin)
		}
		return list
	}
	assert.Equal(t, []string{
		"0.0.0.0/0 10.0.0.9 if0 static", "10.0.0.0/24  if0 local", "10.1.0.0/24  if1 local",
		"10.9.0.0/16 unreachable  static",
	}, table())
	require.NoError(t, n.SetUp("if0", false))
	assert.Equal(t, []string{
		"0.0.0.0/0 10.1.0.9 if1 static", "10.1.0.0/24  if1 local",
		"10.9.0.0/16 unreachable  static",
	}, table(), "the other default route")
	require.NoError(t, n.SetUp("if0", true))

	host := tidepool.Route{
		Prefix: netip.MustParsePrefix("10.7.0.7/32"), Via: netip.MustParseAddr("10.1.0.3"),
	}
	require.NoError(t, n.AddRoute(host))
	require.ErrorIs(t, n.AddRoute(host), syscall.EEXIST)
	assert.Contains(t, table(), "10.7.0.7/32 10.1.0.3 if1 static")
	require.NoError(t, n.DelRoute(host.Prefix, netip.Addr{}))
	require.ErrorIs(t, n.DelRoute(host.Prefix, netip.Addr{}), syscall.ESRCH)
	host.Via = netip.MustParseAddr("10.5.0.3")
	require.ErrorIs(t, n.AddRoute(host), syscall.ENETUNREACH)
	host.Prefix = netip.MustParsePrefix("10.7.0.7/16")
	err := n.AddRoute(host)
	require.ErrorIs(t, err, syscall.EINVAL)
	assert.ErrorContains(t, err, "did you mean 10.7.0.0/16?")
	require.Error(t, n.AddRoute(tidepool.Route{Prefix: host.Prefix.Masked(), Kind: "scenic"}))
	require.Error(t, n.AddRoute(tidepool.Route{Prefix: host.Prefix.Masked(), Metric: -1}))

	var none tidepool.Node
	require.Error(t, none.AddRoute(host))
	require.Error(t, none.DelRoute(host.Prefix, netip.Addr{}))
	_, err = none.Routes()
	require.ErrorIs(t, err, syscall.EINVAL)
	for _, r := range []tidepool.Route{
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.8.0.9"), Metric: 1},
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Kind: "scenic"},
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Kind: "blackhole", Via: host.Via},
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.0.0.9"), Metric: -1},
	} {
		_, end := tidepool.Pipe(0)
		_, err = tidepool.Open(tidepool.Config{
			Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: end}},
			Routes:     []tidepool.Route{r},
		})
		require.Error(t, err, "%v", r)
	}
}

func ExampleNode_AddRoute() {
	_, end := tidepool.Pipe(0)
	n, err := tidepool.Open(tidepool.Config{
		Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix("10.0.0.1/24"), Link: end}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()
	for _, r := range []tidepool.Route{
		{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.0.0.2")},
		{Prefix: netip.MustParsePrefix("192.168.0.0/16"), Kind: "unreachable"},
	} {
		if err := n.AddRoute(r); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(n.AddRoute(tidepool.Route{
		Prefix: netip.MustParsePrefix("10.5.1.0/16"), Via: netip.MustParseAddr("10.0.0.2"),
	}))
	routes, err := n.Routes()
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range routes {
		fmt.Println(r.Origin, r.Prefix, r.Kind, r.Interface)
	}
	// Output:
	// 10.5.1.0/16: not the prefix of an IPv4 network: bits are set behind its length; did you mean 10.5.0.0/16?
	// static 0.0.0.0/0  if0
	// local 10.0.0.0/24  if0
	// static 192.168.0.0/16 unreachable
}
