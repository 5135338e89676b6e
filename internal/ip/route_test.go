package ip_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
)

func route(prefix string, iface int, o ip.Origin) ip.Route {
	return ip.Route{Prefix: netip.MustParsePrefix(prefix), Iface: iface, Origin: o}
}

// The longest prefix wins in both families: RFC 1812 §5.2.4.3, RFC 4291 §2.3.
func TestLookupLongestPrefix(t *testing.T) {
	var table ip.Table
	for i, p := range []string{
		"0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9", "10.1.0.0/16", "10.1.2.0/23",
		"10.1.2.0/24", "10.1.2.128/25", "10.1.2.200/32", "10.1.2.0/32", "192.168.0.0/31",
		"::/0", "2001:db8::/32", "2001:db8:8000::/33", "2001:db8:0:1::/64", "2001:db8::1/128",
		"2001:db8::/127", "a00::/8", "::ffff:10.0.0.0/104",
	} {
		table.Insert(route(p, i, ip.Static))
	}
	tests := []struct{ addr, want string }{
		{"10.1.2.200", "10.1.2.200/32"},
		{"10.1.2.201", "10.1.2.128/25"},
		{"10.1.2.127", "10.1.2.0/24"},
		{"10.1.2.0", "10.1.2.0/32"},
		{"10.1.3.1", "10.1.2.0/23"},
		{"10.1.4.1", "10.1.0.0/16"},
		{"10.2.0.1", "10.0.0.0/9"},
		{"10.200.0.1", "10.128.0.0/9"},
		{"11.0.0.1", "0.0.0.0/0"},
		{"192.168.0.1", "192.168.0.0/31"},
		{"192.168.0.2", "0.0.0.0/0"},
		{"0.0.0.0", "0.0.0.0/0"},
		{"255.255.255.255", "0.0.0.0/0"},
		{"2001:db8::1", "2001:db8::1/128"},
		{"2001:db8::", "2001:db8::/127"},
		{"2001:db8::2", "2001:db8::/32"},
		{"2001:db8:0:1:ffff::", "2001:db8:0:1::/64"},
		{"2001:db8:0:1:ffff::%eth0", "2001:db8:0:1::/64"},
		{"2001:db8:8000::1", "2001:db8:8000::/33"},
		{"2001:db7::1", "::/0"},
		{"a01:203::", "a00::/8"},
		{"::ffff:10.1.2.3", "::ffff:10.0.0.0/104"},
		{"::", "::/0"},
	}
	for _, tt := range tests {
		r, ok := table.Lookup(netip.MustParseAddr(tt.addr))
		assert.True(t, ok, tt.addr)
		assert.Equal(t, tt.want, r.Prefix.String(), tt.addr)
	}
}

func TestLookupWithoutDefault(t *testing.T) {
	var table ip.Table
	table.Insert(route("::/0", 0, ip.Static))
	_, ok := table.Lookup(ip.V4(10, 0, 0, 1))
	assert.False(t, ok, "no route of this family")
	table.Insert(route("10.0.0.0/24", 0, ip.Local))
	_, ok = table.Lookup(ip.V4(10, 0, 1, 1))
	assert.False(t, ok)
	_, ok = table.Lookup(ip.V4(10, 0, 0, 255))
	assert.True(t, ok)
}

func TestAdministrativeDistance(t *testing.T) {
	var table ip.Table
	p := netip.MustParsePrefix("10.0.0.0/24")
	origin := func() ip.Origin {
		r, ok := table.Lookup(ip.V4(10, 0, 0, 7))
		require.True(t, ok)
		return r.Origin
	}
	table.Insert(route("10.0.0.0/24", 3, ip.RIP))
	assert.Equal(t, ip.RIP, origin())
	table.Insert(route("10.0.0.0/24", 1, ip.Local))
	assert.Equal(t, ip.Local, origin())
	table.Insert(route("10.0.0.0/24", 2, ip.Static))
	assert.Equal(t, ip.Local, origin(), "local is preferred to static")
	assert.Equal(t, 1, table.Len(), "three routes, one prefix")

	t.Log("# when the best route is deleted, the next one is used")
	table.Remove(p, ip.Local)
	assert.Equal(t, ip.Static, origin())
	table.Remove(p, ip.Static)
	assert.Equal(t, ip.RIP, origin())
	table.Remove(p, ip.RIP)
	_, ok := table.Lookup(ip.V4(10, 0, 0, 7))
	assert.False(t, ok)
	assert.Zero(t, table.Len())
}

func TestLongestPrefixBeatsAdministrativeDistance(t *testing.T) {
	var table ip.Table
	table.Insert(route("10.0.0.0/8", 1, ip.Local))
	table.Insert(route("10.1.0.0/16", 2, ip.RIP))
	r, ok := table.Lookup(ip.V4(10, 1, 0, 1))
	require.True(t, ok)
	assert.Equal(t, ip.RIP, r.Origin)
}

func TestInsertIgnoresHostBits(t *testing.T) {
	var table ip.Table
	table.Insert(route("10.0.0.77/24", 1, ip.Static))
	r, ok := table.Lookup(ip.V4(10, 0, 0, 1))
	require.True(t, ok)
	assert.Equal(t, "10.0.0.0/24", r.Prefix.String())
	table.Remove(netip.MustParsePrefix("10.0.0.5/24"), ip.Static)
	assert.Zero(t, table.Len())
}

func TestTableRefusesInvalidPrefixes(t *testing.T) {
	var table ip.Table
	assert.Panics(t, func() { table.Insert(ip.Route{}) })
	assert.Panics(t, func() { table.Remove(netip.Prefix{}, ip.Static) })
}

func TestAllIsSortedAndStops(t *testing.T) {
	var table ip.Table
	for _, p := range []string{
		"fd00::/8", "10.1.0.0/16", "0.0.0.0/0", "10.0.0.0/8", "192.168.1.1/32", "::/0", "::1/128",
		"10.0.0.0/30", "fd00::/9",
	} {
		table.Insert(route(p, 0, ip.RIP))
		table.Insert(route(p, 1, ip.Static))
	}
	var got []string
	for r := range table.All() {
		assert.Equal(t, ip.Static, r.Origin, "only the route in use")
		got = append(got, r.Prefix.String())
	}
	assert.Equal(t, []string{
		"0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/30", "10.1.0.0/16", "192.168.1.1/32",
		"::/0", "::1/128", "fd00::/8", "fd00::/9",
	}, got)
	for r := range table.All() {
		assert.Equal(t, "0.0.0.0/0", r.Prefix.String())
		break
	}
}

// oracle is a table that follows RFC 1812 §5.2.4.3 literally: it examines every route.
type oracle map[netip.Prefix]map[ip.Origin]ip.Route

func (o oracle) best(p netip.Prefix) (ip.Route, bool) {
	for _, origin := range []ip.Origin{ip.Local, ip.Static, ip.RIP} {
		if r, ok := o[p][origin]; ok {
			return r, true
		}
	}
	return ip.Route{}, false
}

func (o oracle) lookup(a netip.Addr) (ip.Route, bool) {
	for bits := a.BitLen(); bits >= 0; bits-- {
		p, _ := a.Prefix(bits)
		if r, ok := o.best(p); ok {
			return r, true
		}
	}
	return ip.Route{}, false
}

func (o oracle) all() (list []ip.Route) {
	for p := range o {
		if r, ok := o.best(p); ok {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b ip.Route) int { return a.Prefix.Compare(b.Prefix) })
	return list
}

// hopOf returns the Hop that the route to a contains.
func hopOf(r ip.Route, a netip.Addr, ok bool) ip.Hop {
	if !ok {
		return ip.Hop{}
	}
	if !r.NextHop.IsValid() {
		return ip.Hop{Next: a, Iface: r.Iface, OnLink: true, Kind: r.Kind}
	}
	return ip.Hop{Next: r.NextHop, Iface: r.Iface, Kind: r.Kind}
}

func TestTableEqualsOracle(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	var table ip.Table
	o := oracle{}
	addr := func() netip.Addr { // few distinct bytes, so that prefixes nest and collide
		b := func() byte { return []byte{0, 1, 127, 128, 129, 255}[rng.IntN(6)] }
		if rng.IntN(2) == 0 {
			return netip.AddrFrom4([4]byte{b(), b(), b(), b()})
		}
		return netip.AddrFrom16([16]byte{b(), 5: b(), 10: b(), 12: b(), 13: b(), 15: b()})
	}
	for step := range 20_000 {
		host := addr()
		p := netip.PrefixFrom(host, rng.IntN(host.BitLen()+1)).Masked()
		origin := ip.Origin(rng.IntN(3))
		if rng.IntN(100) < 45 {
			delete(o[p], origin)
			table.Remove(p, origin)
		} else {
			r := ip.Route{
				Prefix: p, Iface: rng.IntN(4), Origin: origin, Kind: ip.Kind(rng.IntN(3)),
				Cost: rng.IntN(3),
			}
			if rng.IntN(2) == 0 {
				r.NextHop = addr()
			}
			if o[p] == nil {
				o[p] = map[ip.Origin]ip.Route{}
			}
			o[p][origin] = r
			table.Insert(r)
		}
		a := addr()
		want, wantOK := o.lookup(a)
		got, ok := table.Lookup(a)
		require.Equal(t, wantOK, ok, "seed %d step %d: %v", seed, step, a)
		require.Equal(t, want, got, "seed %d step %d: %v", seed, step, a)
		hop, _ := table.Hop(a)
		require.Equal(t, hopOf(want, a, ok), hop, "seed %d step %d: %v", seed, step, a)
		if step%1000 == 0 {
			require.Equal(t, o.all(), slices.Collect(table.All()), "seed %d step %d", seed, step)
			require.Len(t, o.all(), table.Len())
		}
	}
	t.Log("# all routes are removed, and the table is empty")
	for p, routes := range o {
		for origin := range routes {
			table.Remove(p, origin)
		}
	}
	assert.Zero(t, table.Len())
	assert.Empty(t, slices.Collect(table.All()))
	_, ok := table.Lookup(ip.V4(10, 0, 0, 1))
	assert.False(t, ok)
}
