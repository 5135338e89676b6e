package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

func TestTunFlag(t *testing.T) {
	for text, want := range map[string]string{
		"tun0=10.8.0.1/24":   "\ninterface tun0 10.8.0.1/24 tun:tun0 kernel 10.8.0.2\n",
		"tun0=10.8.0.254/24": "\ninterface tun0 10.8.0.254/24 tun:tun0 kernel 10.8.0.253\n",
		"tun0=fd08::1/64":    "\ninterface tun0 fd08::1/64 tun:tun0 kernel fd08::2\n",
		"t=10.8.0.2/30":      "\ninterface t 10.8.0.2/30 tun:t kernel 10.8.0.1\n",
		"t=10.8.0.1/31":      "\ninterface t 10.8.0.1/31 tun:t kernel 10.8.0.0\n",
	} {
		line, err := tunLine(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, line)
		_, err = lnx.Parse("A.lnx", []byte(line))
		assert.NoError(t, err, text)
	}
	for _, text := range []string{"", "tun0", "tun0=", "=10.8.0.1/24", "tun0=10.8.0.1", "tun0=fe80::1/64"} {
		_, err := tunLine(text)
		assert.ErrorContains(t, err, "must be NAME=ADDR/LEN", text)
	}
	_, err := tunLine("tun0=10.8.0.1/32")
	assert.ErrorContains(t, err, "only one address")
}

// The advice lists the commands to run, in a form that a user can copy.
func TestTunAdvice(t *testing.T) {
	const links = `interface if0 10.1.0.1/24 127.0.0.1:5000
neighbor 10.1.0.2 at 127.0.0.1:5001 via if0
`
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"no device":  {file: links},
		"a host":     {file: "interface tun0 10.8.0.1/24 tun:no-such kernel 10.8.0.2\n"},
		"its routes": {file: links + "interface tun0 10.8.0.1/24 tun:no-such kernel 10.8.0.2 routes 10.1.0.0/16\n"},
		"a router": {
			file: links + "interface tun0 10.8.0.1/24 tun:no-such kernel 10.8.0.2\n" +
				"route 10.2.0.0/16 via 10.1.0.2\nroute 0.0.0.0/0 via 10.8.0.2\nroute 10.9.0.0/16 via 10.8.0.2\n",
			want: []string{
				"tun0: this machine has no route yet: sudo ip route add 10.1.0.0/24 via 10.8.0.1",
				"tun0: this machine has no route yet: sudo ip route add 10.2.0.0/16 via 10.8.0.1",
			},
		},
		"both families": {
			file: links + "address if0 fd01::1/64\nneighbor fd01::2 at 127.0.0.1:5001 via if0\n" +
				"interface tun0 10.8.0.1/24 tun:no-such\naddress tun0 fd08::1/64\n" +
				"route fd02::/64 via fd01::2\nroute fd09::/64 via fe80::2%tun0\n",
			want: []string{
				"tun0: the kernel's end is not up: sudo ip address add 10.8.0.2/24 dev no-such && " +
					"sudo ip address add fd08::2/64 dev no-such && sudo ip link set no-such up",
				"tun0: this machine has no route yet: sudo ip route add 10.1.0.0/24 via 10.8.0.1",
				"tun0: this machine has no route yet: sudo ip route add fd01::/64 via fd08::1",
				"tun0: this machine has no route yet: sudo ip route add fd02::/64 via fd08::1",
			},
		},
		"RIP, and a foreign interface": {
			file: links + "interface tun0 10.8.0.1/24 tun:no-such\nrouting rip\n",
			want: []string{
				"tun0: the kernel's end is not up: sudo ip address add 10.8.0.2/24 dev no-such && " +
					"sudo ip link set no-such up",
				"tun0: this machine has no route yet: sudo ip route add 10.1.0.0/24 via 10.8.0.1",
				"tun0: do the same for routes from RIP; `routes` lists them",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := lnx.Parse("A.lnx", []byte(c.file))
			require.NoError(t, err)
			assert.Equal(t, c.want, tunAdvice(cfg))
		})
	}
}
