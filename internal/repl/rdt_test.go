package repl

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

var someSum = strings.Repeat("5f70bf18", 8)

// giving returns a node with an RDT server and flows.
func giving() *fake {
	at := netip.MustParseAddrPort
	entries := []control.RDTEntry{
		{Name: "large-0", Bytes: 999651, SHA256: someSum}, {Name: "small 0\x1b", SHA256: someSum},
	}
	return &fake{do: func(_ context.Context, req any) (any, error, bool) {
		switch r := req.(type) {
		case control.RDTServe:
			return control.RDTServed{Local: at("0.0.0.0:9000"), Objects: 2, Bytes: 999651}, nil, true
		case control.RDTClose:
			if r.Port != 9000 {
				return nil, control.ErrNoSuchSocket, true
			}
			return control.Nothing{}, nil, true
		case control.RDTList:
			return entries, nil, true
		case control.RDTFetch:
			if len(r.Names) > 0 {
				return nil, control.ErrNoSuchObject, true
			}
			got := control.RDTFetched{
				Bytes: 999651, Seconds: .25, Received: 758, Twice: 4, Damaged: 1, Acks: 763, Requests: 2,
				Objects: []control.RDTObject{
					{RDTEntry: entries[0], Path: "out/large-0", Began: .002, Done: .249}, {RDTEntry: entries[1]},
				},
			}
			if r.Progress != nil {
				r.Progress(control.Progress{Bytes: 999651, Total: 999651, Elapsed: time.Second})
			}
			if got.Made = r.Dir; r.Dir == "" {
				got.Objects[1].Problem = "rdt: the peer does not answer"
			}
			return got, nil, true
		case control.RDTFlows:
			return []control.RDTFlow{
				{
					Local: at("0.0.0.0:9000"), Remote: at("0.0.0.0:0"), State: "serving", Objects: 2,
					Bytes: 999651,
				},
				{
					Local: at("0.0.0.0:9000"), Remote: at("10.0.0.1:49160"), State: "sending", Objects: 1,
					Bytes: 9998, Sent: 900, Again: 120, Received: 830, InFlight: 70,
				},
				{
					Local: at("10.0.0.2:51000"), Remote: at("10.0.0.1:9"), State: "receiving", Sent: 7,
					Received: 6,
				},
			}, nil, true
		}
		return nil, nil, false
	}}
}

func TestRDTOutput(t *testing.T) {
	transcript(t, "rdt.golden", giving, []string{
		"rdt", "rdt --json", "rdt serve 9000 dir", "rdt serve 9000 dir --json",
		"rdt list 10.0.0.1 9000", "rdt list 10.0.0.1 9000 --json",
		"rdt fetch 10.0.0.1 9000 into out", "rdt fetch 10.0.0.1 9000",
		"rdt fetch 10.0.0.1 9000 --json", "rdt fetch 10.0.0.1 9000 a", "rdt close 9000",
		"rdt close 1", "help rdt", "rdt serve --help", "rdt list --help", "rdt fetch --help",
	})
}

func TestRDTRequests(t *testing.T) {
	server := control.RDTOptions{Window: 128, Payload: 1325, Patience: 10 * time.Second}
	client := control.RDTOptions{Checksum: "md5", Patience: 10 * time.Second}
	for line, want := range map[string]any{
		"rdt":               control.RDTFlows{},
		"rdt serve 9 a":     control.RDTServe{Port: 9, Paths: []string{"a"}, Options: server},
		"rdt close 9000":    control.RDTClose{Port: 9000},
		"rdt serve 9 a b c": control.RDTServe{Port: 9, Paths: []string{"a", "b", "c"}, Options: server},
		"rdt serve 9 a --window 1120 --payload=10 --timeout 1 --cumulative --compress --interleave": control.RDTServe{
			Port: 9, Paths: []string{"a"}, Options: control.RDTOptions{
				Window: 1120, Payload: 10, Timeout: time.Second, Cumulative: true, Compress: true,
				Interleave: true, Patience: 10 * time.Second,
			},
		},
		"rdt list 10.0.0.1 9 --checksum crc32c --patience 1.5": control.RDTList{
			Addr: peer, Port: 9, Options: control.RDTOptions{
				Checksum: "crc32c", Patience: 1500 * time.Millisecond,
			},
		},
		"rdt fetch 10.0.0.1 9": control.RDTFetch{Addr: peer, Port: 9, Names: []string{}, Options: client},
		"rdt fetch 10.0.0.1 9 into out": control.RDTFetch{
			Addr: peer, Port: 9, Names: []string{}, Dir: "out", Options: client,
		},
		"rdt fetch 10.0.0.1 9 a 'b c' into into": control.RDTFetch{
			Addr: peer, Port: 9, Names: []string{"a", "b c"}, Dir: "into", Options: client,
		},
	} {
		s := open(t, giving(), Config{})
		_ = s.Execute(t.Context(), line) // fetching several objects fails here
		asked := s.node.requests()
		if f, ok := asked[0].(control.RDTFetch); ok {
			f.Progress = nil
			asked[0] = f
		}
		assert.Equal(t, []any{want}, asked, line)
	}
}

func TestInvalidRDTLinesSendNoRequest(t *testing.T) {
	for line, text := range map[string]string{
		"rdt fetsch":                           `rdt: "fetsch": must be close, fetch, list or serve; did you mean fetch?`,
		"rdt nothing":                          `rdt: "nothing": must be close, fetch, list or serve`,
		"rdt serve":                            "rdt serve: PORT is missing",
		"rdt serve 9":                          "rdt serve: PATH is missing",
		"rdt serve 0 a":                        `rdt serve: "0" is not a port (1 to 65535)`,
		"rdt serve 9 a --window 0":             "rdt serve: --window 0: must be 1 to 32768",
		"rdt serve 9 a --payload 65456":        "rdt serve: --payload 65456: must be 1 to 65455 bytes",
		"rdt serve 9 a --timeout -1":           "rdt serve: --timeout -1: must be 0, or 0.001 to 1800 seconds",
		"rdt serve 9 a --checksum md5":         "rdt serve: unknown flag: --checksum",
		"rdt list 10.0.0.1":                    "rdt list: PORT is missing",
		"rdt list 10.0.0.1 9 a":                `rdt list: unexpected argument: "a"`,
		"rdt fetch":                            "rdt fetch: ADDR is missing",
		"rdt fetch 10.0.0 9":                   `rdt fetch: "10.0.0" is not an IP address`,
		"rdt fetch 10.0.0.1 9 into":            "rdt fetch: DIR is missing",
		"rdt fetch 10.0.0.1 9 --checksum sha1": "rdt fetch: --checksum sha1: must be md5 or crc32c",
		"rdt fetch 10.0.0.1 9 --patience 0":    "rdt fetch: --patience 0: must be 0.1 or more seconds",
		"rdt close x":                          `rdt close: "x" is not a port (1 to 65535)`,
	} {
		s := open(t, giving(), Config{})
		err := s.Execute(t.Context(), line)
		require.EqualError(t, err, text, line)
		require.ErrorIs(t, err, control.ErrUsage)
		assert.Empty(t, s.node.requests())
	}
}

func TestRDTCompletes(t *testing.T) {
	s := open(t, giving(), Config{})
	assert.ElementsMatch(t, []string{"close", "fetch", "list", "serve"}, s.Complete("rdt "))
	assert.Equal(t, []string{"10.0.0.1"}, s.Complete("rdt fetch "))
	assert.Equal(t, []string{"9000", "51000"}, s.Complete("rdt close "))
	assert.ElementsMatch(t, []string{"md5", "crc32c"}, s.Complete("rdt fetch 10.0.0.1 9 --checksum "))
	assert.Contains(t, s.Complete("rdt serve 9 "), "rdt_test.go")
	assert.Contains(t, s.Complete("rdt serve 9 a rdt"), "rdt_test.go")
	assert.Empty(t, s.Complete("rdt serve "))
}
