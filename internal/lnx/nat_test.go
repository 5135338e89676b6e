package lnx_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/nat"
)

const natHead = "interface if0 10.0.0.1/24 127.0.0.1:5000\ninterface if1 10.1.0.1/24 127.0.0.1:5001\n"

func TestNATLines(t *testing.T) {
	text := natHead + "nat forward if1 tcp 80 10.0.0.2:8080\n" +
		"nat on if1 mapping symmetric filtering address-dependent udp 30s established 1h " +
		"transitory 10s icmp 5s sessions 100 per-host 7\nnat on if0 symmetric\n"
	c, err := lnx.Parse("R.lnx", []byte(text))
	require.NoError(t, err)
	assert.True(t, c.Forwarding)
	require.Len(t, c.NATs, 2)
	n := c.NATs[0].Config
	assert.Equal(t, nat.AddressPortDependent, n.Mapping)
	assert.Equal(t, nat.AddressDependent, n.Filtering)
	assert.Equal(t, nat.Timeouts{
		UDP: 30 * time.Second, Established: time.Hour, Transitory: 10 * time.Second,
		ICMP: 5 * time.Second,
	}, n.Timeouts)
	assert.Equal(t, 100, n.MaxSessions)
	assert.Equal(t, 7, n.MaxPerHost)
	assert.Equal(t, "10.0.0.2:8080", n.Forwards[0].To.String())
	again, err := lnx.Parse("R.lnx", c.Format())
	require.NoError(t, err)
	assert.Equal(t, string(c.Format()), string(again.Format()))
	assert.Contains(t, string(c.Format()), "nat on if0 symmetric\n")
}

func TestWrongNATLines(t *testing.T) {
	for line, want := range map[string]string{
		"nat on if9":                                      "if9",
		"nat on if1 symetric":                             "symmetric",
		"nat on if1 mapping":                              "mapping is incomplete",
		"nat on if1 mapping full":                         "not a type of NAT",
		"nat on if1 udp 0s":                               "not a timeout",
		"nat on if1 sessions 0":                           "sessions",
		"nat on if1\nnat on if1":                          "already",
		"nat forward if1 tcp 80 10.0.0.2:80":              "not an interface with a NAT",
		"nat on if1\nnat forward if1 sctp 80 10.0.0.2:80": "not a protocol",
		"nat on if1\nnat forward if1 tcp 80 10.0.0.2":     "not an IPv4 address with a port",
		"nat on if1\nnat forward if1 tcp 80 10.0.0.1:80":  "this node itself",
		"nat on if1\nnat forward if1 tcp 80 10.0.0.2:80\nnat forward if1 tcp 80 10.0.0.3:80": "twice",
	} {
		_, err := lnx.Parse("R.lnx", []byte(natHead+line+"\n"))
		require.Error(t, err, line)
		assert.Contains(t, err.Error(), want, line)
	}
	six := "interface if0 10.0.0.1/24 127.0.0.1:5000\ninterface if1 2001:db8::1/64 127.0.0.1:5001\n"
	_, err := lnx.Parse("R.lnx", []byte(six+"nat on if1\n"))
	require.ErrorContains(t, err, "without an IPv4 address")
}
