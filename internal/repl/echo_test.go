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

// smallNode returns a node that answers requests for echoes and pages.
func smallNode(asked *[]any) *fake {
	peer := netip.MustParseAddrPort("10.0.0.1:7")
	return &fake{do: func(_ context.Context, req any) (any, error, bool) {
		switch r := req.(type) {
		case control.Echo:
			each := r.Each
			r.Each = nil
			*asked = append(*asked, r)
			if each != nil {
				each(control.EchoReply{From: peer, Seq: 1, Size: 64, RTT: 412 * time.Microsecond})
				each(control.EchoReply{From: peer, Seq: 2, Problem: "no answer"})
			}
			return control.EchoResult{
				Peer: peer, UDP: r.UDP, Sent: 2, Received: 2 - len(*asked)%2,
				Min: 400 * time.Microsecond, Avg: 500 * time.Microsecond, Max: time.Millisecond,
			}, nil, true
		case control.ServeSmall:
			*asked = append(*asked, r)
			return control.Socket{SID: 3, Local: peer, State: "LISTEN"}, nil, true
		case control.Fetch:
			r.Progress(control.Progress{Bytes: 10, Total: 20, Elapsed: time.Second})
			r.Progress = nil
			*asked = append(*asked, r)
			page := somePage(r)
			page.Body, page.Path, page.Offset, page.SHA256 = nil, r.Path, 7, strings.Repeat("ab", 32)
			return page, nil, true
		}
		return nil, nil, false
	}}
}

// TestSmallOutput compares the output of echo, discard, chargen and http with
// testdata/small.golden.
func TestSmallOutput(t *testing.T) {
	var asked []any
	transcript(t, "small.golden", func() *fake { return smallNode(&asked) }, []string{
		"echo 10.0.0.1 -c 2", "echo 10.0.0.1 9007 -u -s 100 -i 0.5 -W 1", "echo 10.0.0.1 --json-stream",
		"echo serve", "discard 99", "chargen", "http get 10.0.0.1/f -o f -C", "http get 10.0.0.1/f -r 0-9 --json-stream",
		"http serve 80 nets", "help echo", "help http", "http get --help", "echo", "echo here", "echo 10.0.0.1 -s 3",
		"http", "http gte", "http get 10.0.0.1 -C",
	})
	assert.Equal(t, control.Echo{
		Addr: peer, Port: 9007, UDP: true, Count: 4, Size: 100, Interval: 500 * time.Millisecond, Timeout: time.Second,
	}, asked[1])
	assert.Contains(t, asked, control.ServeSmall{Service: control.ServiceDiscard, Port: 99})
	assert.Contains(t, asked, control.Fetch{URL: "10.0.0.1/f", Path: "f", Resume: true})
	assert.Contains(t, asked, control.Fetch{URL: "10.0.0.1/f", Range: "0-9"})
	require.Len(t, asked, 8)
}
