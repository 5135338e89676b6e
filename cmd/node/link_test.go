package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/netns"
)

// The hosts file has each node's names, with and without the zone. For a router with NAT it has the
// address that both sides can reach.
func TestHostsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "home.net")
	require.NoError(t, os.WriteFile(path, []byte("link A R\nlink R S\nnat R S\n"), 0o600))
	text, err := hostsFile(path)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1 localhost\n::1 localhost\n10.0.0.1 A a A.internal\n"+
		"10.1.0.1 R r R.internal\n10.1.0.2 S s S.internal\n", text)
}

// The file of a link with IPv6 has two addresses.
func TestFileOfALink(t *testing.T) {
	o, a := linkOptions{mtu: defaultLinkMTU}, netip.MustParseAddr
	file, err := o.file(netns.LinkEnds{
		Gateway: a("100.64.0.1"), Program: a("100.64.0.2"), Gateway6: a("fd00::1"), Program6: a("fd00::2"),
	})
	require.NoError(t, err)
	assert.Len(t, file.Interfaces[0].Addrs(), 2)
}

func TestLinkWords(t *testing.T) {
	both, err := linkWords([]string{"delay", "20ms", "uplink", "loss", "1%", "downlink", "rate", "1mbit"})
	require.NoError(t, err)
	assert.Equal(t, 20*time.Millisecond, both[uplink].Delay)
	assert.Equal(t, 20*time.Millisecond, both[downlink].Delay)
	assert.Contains(t, both[uplink].String(), "loss 1%")
	assert.Nil(t, both[downlink].Loss)
	assert.Nil(t, both[uplink].Rate)
	assert.NotNil(t, both[downlink].Rate)
	_, err = linkWords([]string{"delya", "20ms"})
	assert.ErrorContains(t, err, `"delya" is not an impairment`)
	_, err = linkWords([]string{"rate", "2mbit", "downlink", "rate", "1mbit"})
	assert.ErrorContains(t, err, "write `uplink rate … downlink rate …`")
	_, err = linkWords([]string{"rate", "2mbit", "rate", "1mbit"})
	assert.NotContains(t, err.Error(), "uplink")
}

// The command accepts mahimahi's command lines unchanged.
func TestMahimahiLines(t *testing.T) {
	both, err := mahimahiLink([]string{"mm-delay", "20"})
	require.NoError(t, err)
	assert.Equal(t, 20*time.Millisecond, both[uplink].Delay)
	assert.Equal(t, 20*time.Millisecond, both[downlink].Delay)
	both, err = mahimahiLink([]string{"mm-loss", "uplink", "0.1"})
	require.NoError(t, err)
	assert.Contains(t, both[uplink].String(), "loss 10%")
	assert.Nil(t, both[downlink].Loss)
	_, err = mahimahiLink([]string{"mm-loss", "sideways", "0.1"})
	assert.ErrorContains(t, err, "sideways")
	assert.Equal(t, []string{"mm-delay", "5", "ls"}, mahimahiArgs([]string{"/bin/mm-delay", "5", "ls"}))
	assert.Equal(t, []string{"run", "A.lnx"}, mahimahiArgs([]string{"bin/node", "run", "A.lnx"}))
}
