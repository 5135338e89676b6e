package repl

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// fence returns a node with RCP.
func fence() *fake {
	at := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	counts := control.RCPCounts{
		DAT: 1500, ACK: 1010, FIN: 1, Again: 320, Received: 2000, Dropped: 310,
	}
	return &fake{do: func(_ context.Context, req any) (any, error, bool) {
		switch r := req.(type) {
		case control.RCPEcho:
			return control.RCPPort{Local: at("0.0.0.0:9000")}, nil, true
		case control.RCPClose:
			if r.Port != 9000 {
				return nil, control.ErrNoSuchSocket, true
			}
			return control.Nothing{}, nil, true
		case control.RCPCount:
			return control.RCPCounted{
				Writes: r.Writes, Bytes: 299612, SHA256: "5f70bf18a086007016e948b04aed3b82103a36be",
				Seconds: 10.71, SRTT: 12340 * time.Microsecond, RCPCounts: counts,
			}, nil, true
		case control.RCPSockets:
			return []control.RCPSocket{
				{Local: at("0.0.0.0:9000"), Remote: at("0.0.0.0:0"), State: "listening", RCPCounts: counts},
				{
					Local: at("10.0.0.2:9000"), Remote: at("10.0.0.1:49160"), State: "open",
					Unacked: 7, Held: 2, Unsent: 10, Unread: 300, SRTT: time.Millisecond,
					RCPCounts: counts,
				},
			}, nil, true
		}
		return nil, nil, false
	}}
}

func TestRCPOutput(t *testing.T) {
	transcript(t, "rcp.golden", fence, []string{
		"rcp", "rcp --json", "rcp echo 9000", "rcp echo 9000 --json",
		"rcp count 10.0.0.1 9000", "rcp count 10.0.0.1 9000 --json", "rcp close 9000",
		"rcp close 1", "help rcp", "rcp echo --help", "rcp count --help",
	})
}

func TestRCPRequests(t *testing.T) {
	usual := 3 * time.Second
	plain := control.RCPOptions{Width: 32, Timeout: usual}
	for line, want := range map[string]any{
		"rcp":            control.RCPSockets{},
		"rcp echo 9":     control.RCPEcho{Port: 9, Options: plain},
		"rcp close 9000": control.RCPClose{Port: 9000},
		"rcp echo 9 --width 64 --window": control.RCPEcho{
			Port: 9, Options: control.RCPOptions{Width: 64, Window: true, Timeout: usual},
		},
		"rcp count 10.0.0.1 9": control.RCPCount{Addr: peer, Port: 9, Writes: 1000, Options: plain},
		"rcp count --timer 10.0.0.1 9 --writes=5 --timeout 2": control.RCPCount{
			Addr: peer, Port: 9, Writes: 5,
			Options: control.RCPOptions{Width: 32, Timer: true, Timeout: 2 * time.Second},
		},
	} {
		s := open(t, fence(), Config{})
		require.NoError(t, s.Execute(t.Context(), line), line)
		assert.Equal(t, []any{want}, s.node.requests(), line)
	}
}

func TestInvalidRCPLinesSendNoRequest(t *testing.T) {
	for line, text := range map[string]string{
		"rcp ecco":                        `rcp: "ecco": must be close, count or echo; did you mean echo?`,
		"rcp nothing":                     `rcp: "nothing": must be close, count or echo`,
		"rcp echo":                        "rcp echo: PORT is missing",
		"rcp echo 0":                      `rcp echo: "0" is not a port (1 to 65535)`,
		"rcp echo 9 --width 0":            "rcp echo: --width 0: must be 1 to 1024",
		"rcp echo 9 --timeout 0":          "rcp echo: --timeout 0: must be 0.011 or more seconds",
		"rcp echo 9 --fence":              "rcp echo: unknown flag: --fence",
		"rcp count 10.0.0.1":              "rcp count: PORT is missing",
		"rcp count 10.0.0 9":              `rcp count: "10.0.0" is not an IP address`,
		"rcp count 10.0.0.1 9 --writes 0": "rcp count: --writes 0: must be 1 to 1048576",
		"rcp count 10.0.0.1 9 --width wide": "rcp count: --width wide: must be a whole " +
			"number; --width: use a fence of PACKETS; the receiver's must not be narrower than the sender's",
		"rcp close":   "rcp close: PORT is missing",
		"rcp close x": `rcp close: "x" is not a port (1 to 65535)`,
	} {
		s := open(t, fence(), Config{})
		err := s.Execute(t.Context(), line)
		require.EqualError(t, err, text, line)
		require.ErrorIs(t, err, control.ErrUsage)
		assert.Empty(t, s.node.requests())
	}
}

func TestRCPCompletes(t *testing.T) {
	s := open(t, fence(), Config{})
	assert.ElementsMatch(t, []string{"close", "count", "echo"}, s.Complete("rcp "))
	assert.Equal(t, []string{"echo"}, s.Complete("rcp e"))
	assert.ElementsMatch(t, []string{"10.0.0.1"}, s.Complete("rcp count "))
	assert.ElementsMatch(t, []string{"--width", "--window", "--writes"}, s.Complete("rcp count 10.0.0.1 9 --w"))
	assert.Equal(t, []string{"9000"}, s.Complete("rcp close "))
}
