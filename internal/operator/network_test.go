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
	"github.com/tidepool-net/tidepool/internal/stack"
)

// A file's settings of ICMP and IP become the stack's.
func TestTheKnobsOfAFile(t *testing.T) {
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

// The caller cannot know whether an error in the file came before or after the devices were opened.
func TestOpenClosesTheDevicesOfAWrongConfig(t *testing.T) {
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
