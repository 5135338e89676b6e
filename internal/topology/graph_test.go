package topology

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Link-local addresses in a file join no links, because every link has fe80::/64.
func TestLinkLocalAddressesJoinNoLinks(t *testing.T) {
	texts := []string{
		"interface if0 2001:db8::1/64 127.0.0.1:5000\naddress if0 fe80::a/64\n" +
			"neighbor 2001:db8::2 at 127.0.0.1:5001 via if0\n",
		"interface if0 2001:db8::2/64 127.0.0.1:5001\naddress if0 fe80::b/64\n" +
			"interface if1 2001:db8:1::1/64 127.0.0.1:5002\naddress if1 fe80::b/64\n" +
			"neighbor 2001:db8::1 at 127.0.0.1:5000 via if0\n" +
			"neighbor 2001:db8:1::2 at 127.0.0.1:5003 via if1\n",
		"interface if0 2001:db8:1::2/64 127.0.0.1:5003\naddress if0 fe80::c/64\n" +
			"neighbor 2001:db8:1::1 at 127.0.0.1:5002 via if0\n",
	}
	g := From("x", parsed(t, texts))
	require.Len(t, g.Links, 2)
	assert.Len(t, g.Links[0].Ends, 2)
	assert.Len(t, g.Links[1].Ends, 2)
}

// parsed parses the files of A, B, C, ….
func parsed(t *testing.T, texts []string) (configs []*lnx.Config) {
	t.Helper()
	for i, text := range texts {
		c, err := lnx.Parse(string(rune('A'+i))+".lnx", []byte(text))
		require.NoError(t, err)
		configs = append(configs, c)
	}
	return configs
}

// Without a common subnet, the neighbor lines of either end join the interfaces of a link. For
// link-local addresses, which many nodes have, the UDP address decides. Interfaces with both families
// are on one link.
func TestNeighborsJoinLinks(t *testing.T) {
	for name, test := range map[string]struct {
		texts []string
		want  string
	}{
		"link-local addresses": {[]string{
			"interface if0 fe80::1/64 127.0.0.1:5000\nneighbor fe80::2 at localhost:5001 via if0\n",
			"interface if0 fe80::2/64 127.0.0.1:5001\nneighbor fe80::1 at 127.0.0.1:5000 via if0\n" +
				"interface if1 fe80::2/64 127.0.0.1:5002\nneighbor fe80::3 at 127.0.0.1:5003 via if1\n",
			"interface if0 fe80::3/64 127.0.0.1:5003\n",
			"interface if0 fe80::2/64 127.0.0.1:5004\n",
		}, "A.if0 B.if0, B.if1 C.if0, D.if0"},
		"three nodes, two of which know only the last": {[]string{
			"interface if0 fe80::1/64 127.0.0.1:5000\nneighbor fe80::3 at 127.0.0.1:5002 via if0\n",
			"interface if0 fe80::2/64 127.0.0.1:5001\nneighbor fe80::3 at 127.0.0.1:5002 via if0\n",
			"interface if0 fe80::3/64 127.0.0.1:5002\n",
		}, "A.if0 B.if0 C.if0"},
		"both families, point-to-point": {[]string{
			"interface if0 10.0.0.1/32 127.0.0.1:5000\naddress if0 2001:db8::1/64\n" +
				"neighbor 10.9.0.2 at 127.0.0.1:5001 via if0\n" +
				"neighbor 2001:db8::2 at 127.0.0.1:5001 via if0\n",
			"interface if0 10.9.0.2/32 127.0.0.1:5001\naddress if0 2001:db8::2/64\n" +
				"neighbor 10.0.0.1 at 127.0.0.1:5000 via if0\n" +
				"neighbor 2001:db8::1 at 127.0.0.1:5000 via if0\n",
		}, "A.if0 B.if0"},
		"both families, link-local": {[]string{
			"interface if0 10.0.0.1/32 127.0.0.1:5000\naddress if0 fe80::1/64\n" +
				"neighbor 10.9.0.2 at 127.0.0.1:5001 via if0\n",
			"interface if0 10.9.0.2/32 127.0.0.1:5001\naddress if0 fe80::2/64\n" +
				"neighbor fe80::1 at 127.0.0.1:5000 via if0\n",
		}, "A.if0 B.if0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := From("x", parsed(t, test.texts))
			var links []string
			for _, e := range g.Links {
				var ends []string
				for _, s := range e.Ends {
					ends = append(ends, g.Nodes[s.Node].Name+"."+s.Iface)
				}
				links = append(links, strings.Join(ends, " "))
			}
			assert.Equal(t, test.want, strings.Join(links, ", "))
			looksRight(t, g)
		})
	}
}
