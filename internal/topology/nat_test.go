package topology

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

func files(t *testing.T, p *Plan) []File {
	t.Helper()
	list, err := p.Files()
	require.NoError(t, err)
	return list
}

func TestWrongNATsOfPlans(t *testing.T) {
	const links = "link A R\nlink R B\nlink B C\n"
	for text, want := range map[string]string{
		links + "nat R":            "x.net:4:1: the line must have a router and its neighbor outside",
		links + "nat R B no":       `x.net:4:9: "no" is not a keyword of nat`,
		links + "nat R C":          "x.net:4:5: R has no link to C; expected link R C",
		links + "nat A R":          "x.net:4:5: A is a host, which translates nothing; expected router A",
		links + "nat R B\nnat R B": "x.net:5:5: R has a NAT to B already; expected one line for each link",
		links + "family 6\nnat R B": "x.net:5:5: NAT is for IPv4, and the links have IPv6 only; " +
			"expected family dual",
	} {
		_, err := Parse("x.net", []byte(text), nil)
		assert.ErrorContains(t, err, want)
	}
}
