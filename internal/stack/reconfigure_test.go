package stack_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/stack"
)

func prefixes(s *stack.Stack) (list []string) {
	for _, r := range s.Routing().Infos() {
		list = append(list, r.Prefix.String()+" "+r.Iface)
	}
	return list
}

// TestReconfigure adds, removes and reorders interfaces, and checks the routes after each step.
func TestReconfigure(t *testing.T) {
	s := router(t)
	require.NoError(t, s.Routing().Add(1, route("10.9.0.0/16", "10.1.0.2")))
	assert.Equal(t, []string{
		"10.0.0.0/24 if0", "10.1.0.0/24 if1", "10.2.0.0/31 p2p", "10.9.0.0/16 if1",
	}, prefixes(s))

	t.Log("# two interfaces swap addresses, and one is new")
	require.NoError(t, s.Reconfigure(2, []stack.Interface{
		face("if0", "10.1.0.1/24"), face("if1", "10.0.0.1/24"), face("p2p", "10.2.0.0/31"),
		face("if3", "10.3.0.1/24"),
	}))
	assert.Equal(t, []string{
		"10.0.0.0/24 if1", "10.1.0.0/24 if0", "10.2.0.0/31 p2p", "10.3.0.0/24 if3",
		"10.9.0.0/16 if0",
	}, prefixes(s))
	i, own := s.Interfaces().Owns(netip.AddrFrom4([4]byte{10, 3, 0, 1}))
	assert.True(t, own)
	assert.Equal(t, 3, i)

	t.Log("# two are deleted and keep their numbers")
	s.SetUp(3, 3, false)
	require.NoError(t, s.Reconfigure(3, []stack.Interface{
		{}, face("if1", "10.0.0.1/24"), {}, face("if3", "10.3.0.1/24"),
	}))
	assert.Equal(t, []string{"10.0.0.0/24 if1"}, prefixes(s), "an interface that was down stays down")
	list := s.Interfaces().Infos()
	require.Len(t, list, 2)
	assert.Equal(t, 3, list[1].Index)
	_, own = s.Interfaces().Owns(netip.AddrFrom4([4]byte{10, 1, 0, 1}))
	assert.False(t, own)
	assert.False(t, s.Interfaces().Up(0))
	assert.True(t, s.Interfaces().IsBroadcast(netip.MustParseAddr("10.0.0.255")))
	assert.False(t, s.Interfaces().IsBroadcast(netip.MustParseAddr("10.1.0.255")), "the network is gone")

	t.Log("# one interface is added again, and the operator's static route is installed again")
	require.NoError(t, s.Reconfigure(4, []stack.Interface{
		face("if0", "10.1.0.1/24"), face("if1", "10.0.0.1/24"), {}, face("if3", "10.3.0.1/24"),
	}))
	assert.Equal(t, []string{"10.0.0.0/24 if1", "10.1.0.0/24 if0", "10.9.0.0/16 if0"}, prefixes(s))

	t.Log("# an invalid list changes nothing")
	before := prefixes(s)
	for text, list := range map[string][]stack.Interface{
		"fewer interfaces than": {face("if0", "10.1.0.1/24")},
		"no interfaces":         {{}, {}, {}, {}},
		"the same address":      {face("a", "10.7.0.1/24"), face("b", "10.7.0.1/24"), {}, {}},
		"MTU 10":                {{Name: "a", Addr: netip.MustParsePrefix("10.7.0.1/24"), MTU: 10}, {}, {}, {}},
		"not IPv4":              {{Name: "a", Addr: netip.MustParsePrefix("fd00::1/64")}, {}, {}, {}},
	} {
		require.ErrorContains(t, s.Reconfigure(5, list), text)
		assert.Equal(t, before, prefixes(s))
	}
}
