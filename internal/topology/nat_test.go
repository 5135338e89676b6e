package topology

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// A router with a NAT has a default route outside, which it announces inside. Neither end of the
// link announces routes to the other.
func TestNATsOfPlans(t *testing.T) {
	p, err := Parse("x.net", []byte("dns off\nlink A R0\nlink R0 R\nlink R ISP\nlink ISP X\n"+
		"link X S\nnat R ISP symmetric udp 2m\n"), nil)
	require.NoError(t, err)
	c := made(t, p)
	r, isp := c[2], c[3]
	require.Len(t, r.NATs, 1)
	assert.Equal(t, "if1", r.NATs[0].Iface)
	assert.Equal(t, "10.2.0.2", r.Routes[0].Via.String())
	text := string(files(t, p)[2].Text)
	assert.Contains(t, text, "nat on if1 symmetric udp 2m\n")
	assert.Contains(t, text, "rip originate prefix 0.0.0.0/0\n")
	assert.Contains(t, text, "rip advertise-to 10.1.0.1 ")
	assert.NotContains(t, text, "rip advertise-to 10.2.0.2 ")
	assert.NotContains(t, string(files(t, p)[3].Text), "rip advertise-to 10.2.0.1 ")
	assert.Empty(t, isp.NATs)
	again, err := Parse("y.net", p.Format(), nil)
	require.NoError(t, err)
	assert.Equal(t, string(p.Format()), string(again.Format()))
}

// A port forward leads to a node inside. The names are served where both sides can ask, and the
// first address of the router's name is the one that both sides reach.
func TestForwardsOfPlans(t *testing.T) {
	t.Parallel()
	const text = "link A R\nlink R ISP\nlink ISP S\nnat R ISP\nforward R tcp 8080 A:80\n"
	p, err := Parse("x.net", []byte(text), nil)
	require.NoError(t, err)
	c := made(t, p)
	require.Len(t, c[1].NATs[0].Config.Forwards, 1)
	assert.Equal(t, "tcp 8080 10.0.0.1:80", lnx.NATForwardWords(c[1].NATs[0].Config.Forwards[0]))
	s := c[3]
	assert.Equal(t, "[10.2.0.2]", fmt.Sprint(c[0].DNS.Servers), "A can ask S, S cannot ask A")
	i := slices.IndexFunc(s.DNS.Names, func(n lnx.HostName) bool { return n.Name == "R" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, "[10.1.0.1 10.0.0.2]", fmt.Sprint(s.DNS.Names[i].Addrs))
	assert.Equal(t, "[10.1.0.1 10.0.0.2]", fmt.Sprint(c[1].HostAddrs()))
	assert.Equal(t, text, string(p.Format()))
}

func files(t *testing.T, p *Plan) []File {
	t.Helper()
	list, err := p.Files()
	require.NoError(t, err)
	return list
}

// A port may be forwarded to a router whose own NAT forwards it on, but not across that NAT.
func TestForwardsThroughTwoNATs(t *testing.T) {
	t.Parallel()
	const text = "link H A\nlink R H\nlink R ISP\nlink ISP S\nnat R ISP\nnat H R\n"
	_, err := Parse("x.net", []byte(text+"forward R tcp 80 H:80\nforward H tcp 80 A:80\n"), nil)
	require.NoError(t, err)
	_, err = Parse("x.net", []byte(text+"forward R tcp 80 A:80\n"), nil)
	assert.ErrorContains(t, err, "x.net:7:18: A is not inside the NAT of R")
}

func TestWrongNATsOfPlans(t *testing.T) {
	const links = "link A R\nlink R B\nlink B C\n"
	for text, want := range map[string]string{
		links + "nat R":                    "x.net:4:1: the router or its outside neighbor is missing",
		links + "nat R B no":               `x.net:4:9: "no" is not a keyword of nat`,
		links + "nat R C":                  "x.net:4:5: R has no link to C; expected link R C",
		links + "nat A R":                  "x.net:4:5: A is a host, and only routers have a NAT; expected router A",
		links + "forward R tcp 80":         "x.net:4:1: the line must name a router, a protocol, a port and an inside node",
		links + "forward R tcp 80 A":       `x.net:4:18: "" is not a port; expected A:80`,
		links + "forward R sctp 80 A:80":   `x.net:4:11: "sctp" is not a protocol`,
		links + "forward R tcp 99999 A:80": `x.net:4:15: "99999" is not a port`,
		links + "nat R B\nforward R tcp 80 C:80": "x.net:5:18: C is not inside the NAT of R; " +
			"expected a node inside",
		links + "forward R tcp 80 A:80":                               "x.net:4:9: R has no NAT; expected a line `nat R NEIGHBOR`",
		links + "nat R B\nforward R tcp 80 R:80":                      "x.net:5:9: R forwards to itself; expected a node inside",
		links + "nat R B\nforward R tcp 80 D:80":                      "x.net:5:18: D has no link",
		links + "nat R B\nforward R udp 5 A:80\nforward R udp 5 A:81": "x.net:6:9: R already forwards udp 5",
		links + "nat R B\nnat R B":                                    "x.net:5:5: R already has a NAT to B; expected one line for each link",
		links + "family 6\nnat R B": "x.net:5:5: NAT is for IPv4, and the links have IPv6 only; " +
			"expected family dual",
	} {
		_, err := Parse("x.net", []byte(text), nil)
		assert.ErrorContains(t, err, want)
	}
}
