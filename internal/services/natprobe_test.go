package services_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

// TestNATsOfNodes runs the network nat-home: the probe, the table, and changes of the NAT.
func TestNATsOfNodes(t *testing.T) {
	t.Parallel()
	const first, count = 5400, 12
	ports, nodes := testenv.FreePorts(t, count), map[string]*operator.Node{}
	for _, name := range []string{"A", "R1", "X", "R2", "B", "S"} {
		text, err := os.ReadFile(filepath.Join("../../nets/nat-home", name+".lnx"))
		require.NoError(t, err)
		file := string(text)
		for i, port := range ports {
			file = strings.ReplaceAll(file, fmt.Sprint("127.0.0.1:", first+i), fmt.Sprint("127.0.0.1:", port))
		}
		nodes[name] = operatortest.Start(t, node.Config{}, testenv.ParseNode(t, name, file))
	}
	a, r := nodes["A"], nodes["R1"]
	server := netip.MustParseAddrPort("10.5.0.2:3478")
	assert.Len(t, testenv.Ask(t, nodes["S"], control.NATServe{}).At, 4)
	got := testenv.Ask(t, a, control.NATProbe{Server: server})
	assert.Equal(t, "endpoint-independent", got.Mapping)
	assert.Equal(t, "endpoint-independent", got.Filtering)
	assert.Equal(t, netip.MustParseAddr("10.2.0.1"), got.Outside.Addr())
	assert.True(t, got.NAT)
	got = testenv.Ask(t, nodes["X"], control.NATProbe{Server: server})
	assert.False(t, got.NAT)
	assert.Equal(t, "endpoint-independent", got.Mapping, "X sends from one of its addresses")

	require.NoError(t, control.Order(t.Context(), r, control.SetNAT{
		Iface: "if1", On: true, Args: []string{"symmetric", "per-host", "50"},
	}))
	got = testenv.Ask(t, a, control.NATProbe{Server: server})
	assert.Equal(t, "symmetric", got.Mapping)
	assert.Equal(t, "symmetric", got.Filtering)
	table := testenv.Ask(t, r, control.NATs{})
	require.Len(t, table, 1)
	assert.Equal(t, 50, table[0].MaxPerHost)
	assert.Equal(t, []string{"tcp 8080 10.1.0.1:80"}, table[0].Forwards, "it stays")
	assert.NotEmpty(t, table[0].Sessions)
	assert.NotZero(t, testenv.Ask(t, r, control.ClearNAT{}).Sessions)
	assert.Empty(t, testenv.Ask(t, r, control.NATs{})[0].Sessions)

	for want, bad := range map[string]control.SetNAT{
		"this node has if0, if1":  {Iface: "if9", On: true},
		"did you mean symmetric?": {Iface: "if1", On: true, Args: []string{"symetric"}},
		"has no NAT":              {Iface: "if0"},
		"this node itself":        {Iface: "if1", Forward: []string{"tcp", "81", "10.1.0.2:80"}},
		"no port forward":         {Iface: "if1", Unforward: []string{"udp", "8080"}},
	} {
		require.ErrorContains(t, control.Order(t.Context(), r, bad), want)
	}
	require.ErrorContains(t, control.Order(t.Context(), a, control.SetNAT{Iface: "if0", On: true}),
		"does not forward packets", "a host")
	_, err := control.Ask(t.Context(), r, control.ClearNAT{Iface: "if0"})
	require.ErrorContains(t, err, "has no NAT")
	_, err = control.Ask(t.Context(), r, control.ClearNAT{Iface: "if9"})
	require.ErrorContains(t, err, "this node has if0, if1")
	require.NoError(t, control.Order(t.Context(), r,
		control.SetNAT{Iface: "if1", Unforward: []string{"tcp", "8080"}}))
	require.NoError(t, control.Order(t.Context(), r, control.SetNAT{Iface: "if1"}))
	assert.Empty(t, testenv.Ask(t, r, control.NATs{}))
	_, err = control.Ask(t.Context(), a, control.NATServe{})
	require.ErrorIs(t, err, control.ErrUsage, "one address")
	_, err = control.Ask(t.Context(), a, control.NATProbe{Server: netip.MustParseAddrPort("10.5.0.2:9")})
	require.ErrorContains(t, err, "`nat serve` must run there")
	_, err = control.Ask(t.Context(), a, control.NATProbe{Server: netip.MustParseAddrPort("[::1]:1")})
	require.ErrorIs(t, err, control.ErrUsage)
}
