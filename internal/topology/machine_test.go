package topology_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/topology"
)

const machines = `port 7000
host alpha ssh user@alpha address 192.0.2.2
host beta ssh ssh://beta:2222
node A alpha
node R beta
node B beta
node C localhost
link A R
link R B
link R C
`

func TestMachinesGetTheAddressesOfTheirLinks(t *testing.T) {
	p, err := topology.Parse("m.net", []byte(machines), nil)
	require.NoError(t, err)
	assert.Equal(t, machines, string(p.Format()))
	assert.Equal(t, "user@alpha", p.MachineOf(0).SSH)
	assert.Nil(t, p.MachineOf(3))
	assert.Equal(t, []int{0, 2}, p.Crossing())
	p.Machines[1].Address = netip.MustParseAddr("192.0.2.3")
	p.Machines[1].Here = netip.MustParseAddr("192.0.2.1")
	files, err := p.Files()
	require.NoError(t, err)
	assert.Contains(t, string(files[0].Text), `interface if0 10.0.0.1/24 192.0.2.2:7000 # to R
neighbor 10.0.0.2 at 192.0.2.3:7001 via if0`)
	assert.Contains(t, string(files[1].Text), `interface if1 10.1.0.1/24 127.0.0.1:7002 # to B
neighbor 10.1.0.2 at 127.0.0.1:7003 via if1`, "one machine")
	assert.Contains(t, string(files[3].Text), `interface if0 10.2.0.2/24 192.0.2.1:7005 # to R
neighbor 10.2.0.1 at 192.0.2.3:7004 via if0`)
}

// A machine's address may be IPv6. The course's grammar has no form for it.
func TestMachinesReachedOverIPv6(t *testing.T) {
	const host = "host beta ssh beta address 2001:db8::3\n"
	p, err := topology.Parse("m.net", []byte(host+"node A localhost\nnode B beta\nlink A B\n"), nil)
	require.NoError(t, err)
	p.Machines[0].Here = netip.MustParseAddr("2001:db8::1")
	files, err := p.Files()
	require.NoError(t, err)
	assert.Contains(t, string(files[0].Text), `interface if0 10.0.0.1/24 [2001:db8::1]:6000 # to B
neighbor 10.0.0.2 at [2001:db8::3]:6001 via if0`)
	_, err = lnx.Parse("A.lnx", files[0].Text)
	require.NoError(t, err)
	_, err = topology.Parse("m.net", []byte(host+"node A localhost\nnode B beta\nA <-> B\n"), nil)
	require.ErrorContains(t, err, "the course's form of plans has IPv4 only, and host beta is reached over IPv6")
}

// TestMachinesOfTheCourse checks that a node has one socket, whose address its neighbors on other
// machines use.
func TestMachinesOfTheCourse(t *testing.T) {
	const text = `host beta ssh beta address 192.0.2.3
node A localhost
node B beta
node C beta
node D beta
A <-> B
B <-> C
C <-> D
`
	p, err := topology.Parse("m.net", []byte(text), nil)
	require.NoError(t, err)
	p.Machines[0].Here = netip.MustParseAddr("192.0.2.1")
	assert.Equal(t, []int{0}, p.Crossing())
	a, b := p.Addrs(0)
	assert.Equal(t, "192.168.0.1 192.168.0.2", a.String()+" "+b.String())
	files, err := p.Files()
	require.NoError(t, err)
	assert.Equal(t, "192.0.2.1 5000\n192.0.2.3 5001 192.168.0.1 192.168.0.2\n", string(files[0].Text))
	assert.Equal(t, "localhost 5003\nlocalhost 5002 192.168.0.6 192.168.0.5\n", string(files[3].Text))
}

func TestBadMachines(t *testing.T) {
	for text, want := range map[string]string{
		"host a u@b":        "m.net:1:8: `ssh` is missing before u@b; expected host NAME ssh",
		"host a ssh u@b:22": `ssh takes "u@b:22" as a name, without a port; expected ssh://u@b:22`,
		// "" matches any error
		"host a ssh":                         "",
		"host a ssh -oProxyCommand=x":        `"-oProxyCommand=x" is not an ssh destination`,
		"host a ssh u@b;c":                   `"u@b;c" is not an ssh destination`,
		"host -a ssh b":                      `"-a" cannot name another host`,
		"host localhost ssh b":               `"localhost" cannot name another host`,
		"host a ssh b address 0.0.0.0":       `"0.0.0.0" is not an address of a host`,
		"host a ssh b address fe80::1":       `"fe80::1" is not an address of a host`,
		"host a ssh b address":               "the line must have a host and its ssh destination",
		"host a ssh b\nhost a ssh c":         "m.net:2:6: a is already a host",
		"host a ssh b\nlink X Y":             "m.net:1:6: host a has no node",
		"node X a\nhost a ssh b\nlink X Y":   `m.net:1:8: "a" is not a host`,
		"host a ssh b\nnode X c\nlink X Y":   `m.net:2:8: "c" is not a host of this file`,
		"host a ssh b\nnode X a\nnode X a":   "m.net:3:6: X already has the host a",
		"host a ssh b\nnode X a b\nlink X Y": "the line must have a node's name and a host",
	} {
		_, err := topology.Parse("m.net", []byte(text), nil)
		require.Error(t, err, text)
		assert.ErrorContains(t, err, want, text)
	}
	// A wrong host is one error, whatever the other lines say.
	for _, text := range []string{
		"node R gamma\nlink A R", "link A R\nnode R gamma\nlink R B", "host gamma u@b\nnode R gamma\nlink A R",
		"host gamma ssh\nnode R gamma\nlink A R", "host gamma ssh b addr c\nnode R gamma\nlink A R",
		"node R gamma\nnode B localhost\nR <-> B",
	} {
		_, err := topology.Parse("m.net", []byte(text), nil)
		var all lnx.Errors
		require.ErrorAs(t, err, &all)
		require.Len(t, all, 1, text)
		assert.ErrorContains(t, err, "host", text)
	}
}
