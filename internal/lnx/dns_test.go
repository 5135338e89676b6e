package lnx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// TestDNSLines checks that a file can declare hosts, a zone and servers, and that Format writes
// them back. A label has at most 63 characters (RFC 1035 §2.3.4).
func TestDNSLines(t *testing.T) {
	const face = "interface if0 10.0.0.1/24 127.0.0.1:5000\n"
	c, err := lnx.Parse("A.lnx", []byte(face+`
dns name C 10.1.0.2
dns server 10.0.0.1
dns server 2001:db8::1
dns zone lab.test
dns name c 2001:db8:1::2   # the same host
dns name db.rack-1 10.2.0.2 10.3.0.2
`))
	require.NoError(t, err)
	require.Len(t, c.DNS.Names, 2)
	assert.Equal(t, "[10.1.0.2 2001:db8:1::2]", fmt.Sprint(c.DNS.Names[0].Addrs))
	assert.Equal(t, "[10.0.0.1 2001:db8::1]", fmt.Sprint(c.DNS.Servers))
	again, err := lnx.Parse("A.lnx", c.Format())
	require.NoError(t, err)
	assert.Equal(t, c.DNS, again.DNS)

	many := ""
	for i := range 2001 {
		many += fmt.Sprintf("dns name h%d 10.1.0.2\n", i)
	}
	for line, want := range map[string]string{
		"dns":                                      "dns is incomplete; expected dns and then server, name or zone",
		"dns serve 10.0.0.1":                       `"serve" is not a keyword of dns (did you mean server?)`,
		"dns server C":                             `"C" is not an address`,
		"dns server 10.0.0.1 10.0.0.2":             "expected dns server ADDR",
		"dns name C":                               "expected dns name NAME ADDR …",
		"dns name a..b 10.0.0.2":                   `"a..b" is not a host name; expected letters, digits, - and _`,
		"dns name ü 10.0.0.2":                      "is not a host name",
		"dns name C 10.0.0.2 10.0.0.2":             `"10.0.0.2" is already an address of C`,
		"dns name C 224.0.0.1":                     `"224.0.0.1" is a multicast address`,
		"dns zone -.":                              `"-." is not a domain name`,
		"dns zone a\ndns zone b":                   "dns zone is already set on line 2",
		strings.Repeat("dns server 10.0.0.2\n", 2): `"10.0.0.2" is already a DNS server of this node`,
		"dns server 10.0.0.2\ndns server 10.0.0.3\ndns server 10.0.0.4\ndns server 10.0.0.5": "one DNS server too many; expected at most 3 lines",
		many: "one name too many; expected at most 2000",
		"dns name " + strings.Repeat("a", 64) + " 10.0.0.2": "is not a host name",
	} {
		_, err := lnx.Parse("A.lnx", []byte(face+line+"\n"))
		require.Error(t, err, line)
		assert.ErrorContains(t, err, want)
	}
}
