package topology

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// TestNamesOfAPlan checks that the first host, or the node of a dns line, serves the names of all
// nodes.
func TestNamesOfAPlan(t *testing.T) {
	const links = "link R A\nlink R B\nlink R b\nlink R c..d\n"
	for line, want := range map[string]struct{ server, zone, addr string }{
		"":                {"A", "", "10.0.0.2"},
		"dns R lab.test":  {"R", "lab.test", "10.0.0.1"},
		"dns B":           {"B", "", "10.1.0.2"},
		"dns off":         {},
		"dns B\nfamily 6": {"B", "", "2001:db8:1::2"},
	} {
		p, err := Parse("x.net", []byte(links+line+"\n"), nil)
		require.NoError(t, err)
		for _, c := range made(t, p) {
			if want.server == "" {
				assert.Equal(t, lnx.DNS{}, c.DNS)
				continue
			}
			assert.Equal(t, want.addr, c.DNS.Servers[0].String(), line)
			assert.Equal(t, want.zone, c.DNS.Zone, line)
			if c.Name != want.server {
				assert.Empty(t, c.DNS.Names)
				continue
			}
			var names []string
			for _, n := range c.DNS.Names {
				names = append(names, n.Name)
			}
			assert.Equal(t, []string{"R", "A", "B"}, names, "b is B, and c..d is no domain name")
			assert.Len(t, c.DNS.Names[0].Addrs, 4)
		}
		again, err := Parse("y.net", p.Format(), nil)
		require.NoError(t, err)
		assert.Equal(t, string(p.Format()), string(again.Format()))
	}
	// The files of a course's plan have no DNS lines, like those of net2lnx.
	p, err := Parse("x.net", []byte("node A localhost\nnode B localhost\nA <-> B\n"), nil)
	require.NoError(t, err)
	files, err := p.Files()
	require.NoError(t, err)
	assert.NotContains(t, string(files[0].Text), "dns")
	for line, want := range map[string]string{
		"dns":               "x.net:2:1: the line must have the node that serves names; expected dns NODE [ZONE], or dns off",
		"dns A lab B":       "the line must have the node that serves names",
		"dns off lab":       "the line must have the node that serves names",
		"dns A a..b":        `x.net:2:7: "a..b" is not a domain name`,
		"dns A!":            `"A!" cannot name a node`,
		"dns C":             "x.net:2:5: C has no link",
		"dns A\ndns B":      "x.net:3:1: the node that serves names is already A; expected one line with it",
		"node A x\ndns off": "",
	} {
		_, err := Parse("x.net", []byte("link A B\n"+line+"\n"), nil)
		require.Error(t, err, line)
		assert.ErrorContains(t, err, want)
	}
}
