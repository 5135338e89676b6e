package topology

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Interfaces with link-local addresses in the file are on links of their own: each has fe80::/64.
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
	var configs []*lnx.Config
	for i, text := range texts {
		c, err := lnx.Parse(string(rune('A'+i))+".lnx", []byte(text))
		require.NoError(t, err)
		configs = append(configs, c)
	}
	g := From("x", configs)
	require.Len(t, g.Links, 2)
	assert.Len(t, g.Links[0].Ends, 2)
	assert.Len(t, g.Links[1].Ends, 2)
}
