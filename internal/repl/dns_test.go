package repl

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// TestNamesInCommands checks that commands accept a host's name in place of its address.
func TestNamesInCommands(t *testing.T) {
	to := netip.MustParseAddr("10.1.0.2")
	for line, want := range map[string]any{
		"connect C 80":       control.Connect{Addr: to, Port: 80},
		"sendfile f c 9000":  nil,
		"send C hello":       control.SendTest{Addr: to, Text: "hello"},
		"udp send C 53 hi":   control.SendUDP{Addr: to, Port: 53, Data: []byte("hi")},
		"publish 8080 C:80":  control.Publish{Port: 8080, To: netip.AddrPortFrom(to, 80)},
		"rdt list C 9000":    nil,
		"traceroute -q 1 C":  nil,
		"perf C -t 1":        nil,
		"ping C -c 1 -q":     nil,
		"echo C -c 1":        nil,
		"rcp count C 9000":   nil,
		"fetch http://C/":    nil, // the node resolves the name
		"publish 8080 [C]:x": nil,
	} {
		s := open(t, &fake{do: func(_ context.Context, req any) (any, error, bool) {
			p, ok := req.(control.Ping)
			return control.PingResult{Addr: p.Addr}, nil, ok
		}}, Config{})
		_ = s.Execute(t.Context(), line) // the fake node does not answer every request
		asked := s.node.requests()
		switch {
		case line == "fetch http://C/" || line == "publish 8080 [C]:x":
			assert.NotContains(t, asked, control.Resolve{Name: "C"}, line)
		case want == nil:
			require.Len(t, asked, 2, line)
			assert.IsType(t, control.Resolve{}, asked[0], line)
		default:
			require.Len(t, asked, 2, line)
			assert.Equal(t, want, asked[1], line)
		}
	}
	s := open(t, &fake{do: func(_ context.Context, req any) (any, error, bool) {
		r, ok := req.(control.Resolve)
		assert.True(t, !ok || r.Family == 6)
		return nil, control.ErrTimeout, ok
	}}, Config{})
	err := s.Execute(t.Context(), "ping -6 C")
	require.ErrorIs(t, err, control.ErrTimeout, "the server does not answer")
	assert.Equal(t, 1, ExitCode(err))
}

// TestDNSCommands checks that the commands change and print the node's DNS configuration.
func TestDNSCommands(t *testing.T) {
	state := control.DNSState{DNSConfig: control.DNSConfig{Zone: "internal"}}
	node := &fake{do: func(_ context.Context, req any) (any, error, bool) {
		switch r := req.(type) {
		case control.DNS:
			return state, nil, true
		case control.SetDNS:
			state.DNSConfig = control.DNSConfig(r)
			return state, nil, true
		case control.Resolve:
			if r.Name == "10.1.0.2" {
				return control.Resolved{Name: r.Name, Names: []string{"C.internal."}}, nil, true
			}
			return control.Resolved{Name: r.Name, Addrs: []netip.Addr{
				netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("10.1.0.2"),
			}}, nil, true
		}
		return nil, nil, false
	}}
	do := func(line string) string {
		s := open(t, node, Config{})
		require.NoError(t, s.Execute(t.Context(), line), line)
		return s.out.String()
	}
	assert.Equal(t, "Servers: none; zone internal\nResolver: 0 requests\nThis node serves no names.\n",
		do("dns show"))
	do("dns name C 10.1.0.9")
	assert.Equal(t, "Servers: none; zone internal\nResolver: 0 requests\nServer on port 53: 0 requests\n"+
		"  c               10.1.0.2, 2001:db8::2\n", do("dns name c 10.1.0.2 2001:db8::2"))
	state.Asked, state.Queries = 3, 1
	state.Ignored = []control.DNSCount{{What: "wrong ID", Count: 2}}
	state.Answers = []control.DNSCount{{What: "NOERROR", Count: 1}, {What: "NXDOMAIN"}}
	assert.Equal(t, "Servers: 10.0.0.1, ::1; zone internal\n"+
		"Resolver: 3 requests, ignored: wrong ID 2\n"+
		"Server on port 53: 1 request, answered: NOERROR 1, NXDOMAIN 0\n"+
		"  c               10.1.0.2, 2001:db8::2\n", do("dns server 10.0.0.1 ::1"))
	do("dns off")
	assert.Equal(t, control.DNSConfig{Zone: "internal"}, state.DNSConfig)
	assert.Equal(t, "C has IPv6 address 2001:db8::2\nC has address 10.1.0.2\n", do("host C"))
	assert.Equal(t, "10.1.0.2 is C.internal.\n", do("host 10.1.0.2"))
	for line, want := range map[string]string{
		"dns name C":      "dns name: expected NAME and its addresses",
		"dns name C x":    `dns name: "x" is not an IP address`,
		"dns server":      "dns server: ADDR is missing",
		"dns server here": `dns server: "here" is not an IP address`,
		"dns":             "dns: name, off, server or show is missing",
	} {
		err := open(t, node, Config{}).Execute(t.Context(), line)
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, control.ErrUsage)
	}
}
