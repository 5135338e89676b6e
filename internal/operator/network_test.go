package operator

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// The stack gets the file's settings of ICMP and IP.
func TestSettingsOfAFile(t *testing.T) {
	assert.Equal(t, stack.Knobs{}, internetKnobs(&lnx.Config{}))
	cfg, err := lnx.Parse("A.lnx", []byte(`interface if0 10.0.0.1/24 127.0.0.1:5000
icmp rate off
icmp burst 7
icmp echo off
icmp errors off
icmp echo-broadcast on
icmp timestamp off
ip reverse-path strict
ip directed-broadcast on
ip reassembly-timeout 5000
ip reassembly-bytes 1000000
`))
	require.NoError(t, err)
	assert.Equal(t, stack.Knobs{
		ICMP: stack.ICMPKnobs{
			Errors:   icmp.Limit{Rate: -1, Burst: 7},
			NoErrors: true, NoEcho: true, NoTimestamp: true, EchoBroadcast: true,
		},
		IP: stack.IPKnobs{
			ReversePath: stack.ReverseStrict, DirectedBroadcast: true,
			Reassembly: ip.ReassemblyConfig{Timeout: 5 * time.Second, MaxBytes: 1_000_000},
		},
	}, internetKnobs(cfg))
}

// Open closes the devices after any error, because the caller cannot know whether the error came
// before or after they were opened.
func TestOpenClosesDevicesAfterAnError(t *testing.T) {
	const right = "interface if0 10.0.0.1/24 127.0.0.1:1\n"
	for text, snaplen := range map[string]int{
		right + "impair if0 delay 1s lss 2%\n":                0,
		right + "impair if0 slot distribution nosuch 1ms 1ms": 0,
		right: -1,
	} {
		file, err := lnx.Parse("A.lnx", []byte(text))
		require.NoError(t, err)
		near, far := link.Pipe(0)
		_, err = Open(Config{
			LNX: file, Pcap: "all.pcapng", Snaplen: snaplen,
			Node: node.Config{Devices: map[string]link.Device{"if0": near}},
		})
		require.Error(t, err, text)
		_, err = far.Write([]byte{1})
		require.ErrorIs(t, err, net.ErrClosed, text)
	}
}

// A node runs the protocols of the address families that its interfaces have. RIPng gets no keys.
func TestRIPDialectsOfAFile(t *testing.T) {
	const v4, v6 = "interface if0 10.0.0.1/24 127.0.0.1:5000\n", "interface if1 2001:db8::1/64 127.0.0.1:5001\n"
	for _, tt := range []struct {
		text, v4, v6 string
	}{
		{v4 + v6 + "routing static\n", "", ""},
		{v4 + v6 + "routing rip\n", "course", ""},
		{v4 + v6 + "routing rip ripng\n", "course", "ng"},
		{v4 + v6 + "routing ripng\n", "", "ng"},
		{v4 + v6 + "routing rip2\nrip key if0 1 md5 secret\nrip key if1 1 md5 secret\n", "v2", "ng"},
		{v4 + "routing rip2\n", "v2", ""},
		{v6 + "routing rip2\n", "", "ng"},
	} {
		cfg, err := lnx.Parse("A.lnx", []byte(tt.text))
		require.NoError(t, err, tt.text)
		var s stack.Config
		setRIP(cfg, &s)
		names := map[rip.Dialect]string{rip.Course: "course", rip.RIPv2: "v2", rip.RIPng: "ng"}
		name := func(c *rip.Config) string {
			if c == nil {
				return ""
			}
			return names[c.Dialect]
		}
		assert.Equal(t, []string{tt.v4, tt.v6}, []string{name(s.RIP), name(s.RIPng)}, tt.text)
		for _, f := range cfg.Interfaces {
			s.Interfaces = append(s.Interfaces, stack.Interface{Name: f.Name, Addr: f.Addr, IPv6: f.IPv6})
		}
		_, err = stack.New(1, s)
		require.NoError(t, err, tt.text)
	}
}
