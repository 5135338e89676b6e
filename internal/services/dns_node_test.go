package services_test

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

// TestNamesOfANetwork checks that a node resolves names and addresses by another node's server,
// over IPv4 and over IPv6. A long answer must arrive over TCP (RFC 7766 §5).
func TestNamesOfANetwork(t *testing.T) {
	for server, two := range map[string]func(testing.TB, node.Config) (a, b *operator.Node){
		"10.0.0.2": operatortest.Two, "2001:db8::2": operatortest.TwoIPv6,
	} {
		a, b := two(t, node.Config{})
		var many []netip.Addr
		for i := range 100 {
			many = append(many, netip.AddrFrom4([4]byte{10, 9, 0, byte(i + 1)}))
		}
		testenv.Ask(t, b, control.SetDNS{Names: []control.HostName{
			{Name: "C", Addrs: addrs("10.1.0.2", "2001:db8:1::2")}, {Name: "many", Addrs: many},
		}})
		testenv.Ask(t, a, control.SetDNS{Servers: addrs(server)})
		got := testenv.Ask(t, a, control.Resolve{Name: "c"})
		assert.ElementsMatch(t, addrs("10.1.0.2", "2001:db8:1::2"), got.Addrs)
		assert.Equal(t, addrs("10.1.0.2"), testenv.Ask(t, a, control.Resolve{Name: "C", Family: 4}).Addrs)
		assert.Equal(t, addrs("2001:db8:1::2"),
			testenv.Ask(t, a, control.Resolve{Name: "C.internal.", Family: 6}).Addrs)
		assert.Equal(t, []string{"C.internal."},
			testenv.Ask(t, a, control.Resolve{Name: "2001:db8:1::2"}).Names)
		assert.Len(t, testenv.Ask(t, a, control.Resolve{Name: "many"}).Addrs, 100)
		for name, want := range map[string]string{
			"x": "x: no such host (DNS server " + server + ")",
			"example.com": "example.com: no such host: not in the server's zone (DNS server " +
				server + ")",
			"10.0.0.99": "10.0.0.99: no such host (DNS server " + server + ")",
			"a..b":      "a..b: no such host: not a domain name",
		} {
			_, err := control.Ask(t.Context(), a, control.Resolve{Name: name})
			require.ErrorIs(t, err, control.ErrNoSuchName)
			assert.EqualError(t, err, want)
		}
		state := testenv.Ask(t, b, control.DNS{})
		assert.Contains(t, fmt.Sprint(state.Answers), "{NXDOMAIN ")
		assert.Contains(t, state.Answers, control.DNSCount{What: "REFUSED", Count: 1})
		assert.Equal(t, "internal", state.Zone)

		// After `dns off` the ports are closed, so the query is refused at once.
		testenv.Ask(t, b, control.SetDNS{})
		_, err := control.Ask(t.Context(), a, control.Resolve{Name: "C"})
		require.ErrorIs(t, err, control.ErrRefused)
		// A closed socket stops the server, and names start it again.
		testenv.Ask(t, b, control.SetDNS{Names: []control.HostName{{Name: "C", Addrs: addrs("10.1.0.3")}}})
		assert.Equal(t, addrs("10.1.0.3"), testenv.Ask(t, a, control.Resolve{Name: "C"}).Addrs)
		for _, s := range testenv.Ask(t, b, control.Sockets{}) {
			if s.State == "LISTEN" {
				testenv.Ask(t, b, control.Close{SID: s.SID})
			}
		}
		require.Eventually(t, func() bool {
			return len(testenv.Ask(t, b, control.DNS{}).Names) == 0
		}, time.Minute, time.Millisecond)
		operatortest.NoSockets(t, b)
		testenv.Ask(t, b, control.SetDNS{Names: []control.HostName{{Name: "C", Addrs: addrs("10.1.0.4")}}})
		assert.Equal(t, addrs("10.1.0.4"), testenv.Ask(t, a, control.Resolve{Name: "C"}).Addrs)
	}
}

// TestTheServerAnswersFromTheAddressOfTheQuery checks that a router answers a query to its far
// address from that address (RFC 2181 §4.1), although its route to the client has another address.
func TestTheServerAnswersFromTheAddressOfTheQuery(t *testing.T) {
	a, b, _ := operatortest.Three(t, node.Config{})
	testenv.Ask(t, b, control.SetDNS{Names: []control.HostName{{Name: "C", Addrs: addrs("10.1.0.2")}}})
	testenv.Ask(t, a, control.SetDNS{Servers: addrs("10.1.0.1")})
	assert.Equal(t, addrs("10.1.0.2"), testenv.Ask(t, a, control.Resolve{Name: "C"}).Addrs)
}

// forger is a DNS server that a test drives.
func forger(
	t *testing.T, answer func(c net.PacketConn, from net.Addr, m *dnsmessage.Message),
) *operator.Node {
	t.Helper()
	a, _ := forgerAt(t, answer)
	return a
}

// forgerAt is like forger, and also returns the server's node.
func forgerAt(
	t *testing.T, answer func(c net.PacketConn, from net.Addr, m *dnsmessage.Message),
) (a, b *operator.Node) {
	t.Helper()
	a, b = twoNodes(t)
	c, err := b.Node.Packets.Listen(netip.MustParseAddrPort("10.0.0.2:53"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	testenv.Ask(t, a, control.SetDNS{Servers: addrs("10.0.0.2")})
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) == nil {
				m.Response, m.Additionals = true, nil
				answer(c, from, &m)
			}
		}
	}()
	return a, b
}

func sendMessage(c net.PacketConn, to net.Addr, m *dnsmessage.Message) {
	if b, err := m.Pack(); err == nil {
		_, _ = c.WriteTo(b, to) // if the write fails, the client reports a missing answer
	}
}

func resource(name string, body dnsmessage.ResourceBody) dnsmessage.Resource {
	h := dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: dnsmessage.ClassINET}
	switch body.(type) {
	case *dnsmessage.AResource:
		h.Type = dnsmessage.TypeA
	case *dnsmessage.CNAMEResource:
		h.Type = dnsmessage.TypeCNAME
	}
	return dnsmessage.Resource{Header: h, Body: body}
}

// TestTheResolverIgnoresForgedAnswers checks that forged answers that arrive before the server's
// are counted and have no effect (RFC 5452 §9.1).
func TestTheResolverIgnoresForgedAnswers(t *testing.T) {
	evil := &dnsmessage.AResource{A: [4]byte{6, 6, 6, 6}}
	a := forger(t, func(c net.PacketConn, from net.Addr, m *dnsmessage.Message) {
		name := m.Questions[0].Name.String()
		forged := *m
		forged.Answers = []dnsmessage.Resource{resource(name, evil)}
		forged.ID++
		sendMessage(c, from, &forged)
		forged.ID, forged.Questions = m.ID, []dnsmessage.Question{m.Questions[0]}
		forged.Questions[0].Name = dnsmessage.MustNewName("other.internal.")
		sendMessage(c, from, &forged)
		forged.Questions, forged.Response = m.Questions, false
		sendMessage(c, from, &forged)
		_, _ = c.WriteTo([]byte{1, 2, 3}, from) // a malformed message
		m.Answers = []dnsmessage.Resource{resource(name, &dnsmessage.AResource{A: [4]byte{10, 1, 0, 2}})}
		sendMessage(c, from, m)
	})
	got := testenv.Ask(t, a, control.Resolve{Name: "C", Family: 4})
	assert.Equal(t, addrs("10.1.0.2"), got.Addrs)
	state := testenv.Ask(t, a, control.DNS{})
	assert.Equal(t, "[{wrong ID 1} {wrong question 1} {not an answer 1} {malformed 1}]",
		fmt.Sprint(state.Ignored))
	assert.Equal(t, uint64(1), state.Asked)
}

// TestAnswersFromElsewhereDoNotArrive checks that an answer with the right ID from another port of
// the server does not reach the resolver (RFC 5452 §9.1).
func TestAnswersFromElsewhereDoNotArrive(t *testing.T) {
	var elsewhere atomic.Pointer[node.PacketConn]
	a, b := forgerAt(t, func(c net.PacketConn, from net.Addr, m *dnsmessage.Message) {
		name := m.Questions[0].Name.String()
		m.Answers = []dnsmessage.Resource{resource(name, &dnsmessage.AResource{A: [4]byte{6, 6, 6, 6}})}
		sendMessage(elsewhere.Load(), from, m)
		m.Answers[0].Body = &dnsmessage.AResource{A: [4]byte{10, 1, 0, 2}}
		sendMessage(c, from, m)
	})
	other, err := b.Node.Packets.Listen(netip.MustParseAddrPort("10.0.0.2:5353"))
	require.NoError(t, err)
	elsewhere.Store(other)
	assert.Equal(t, addrs("10.1.0.2"), testenv.Ask(t, a, control.Resolve{Name: "C", Family: 4}).Addrs)
	assert.Empty(t, testenv.Ask(t, a, control.DNS{}).Ignored)
}

// TestQueriesCannotBeGuessed checks that each query has another ID and another port (RFC 5452
// §9.2).
func TestQueriesCannotBeGuessed(t *testing.T) {
	const queries = 50
	ids, ports := map[uint16]bool{}, map[string]bool{}
	var mu sync.Mutex
	a := forger(t, func(c net.PacketConn, from net.Addr, m *dnsmessage.Message) {
		mu.Lock()
		ids[m.ID], ports[from.String()] = true, true
		mu.Unlock()
		m.RCode = dnsmessage.RCodeNameError
		sendMessage(c, from, m)
	})
	for range queries {
		_, err := control.Ask(t.Context(), a, control.Resolve{Name: "C"})
		require.ErrorIs(t, err, control.ErrNoSuchName)
	}
	mu.Lock()
	defer mu.Unlock()
	assert.Greater(t, len(ids), queries*9/10)
	assert.Greater(t, len(ports), queries*9/10)
}

// TestAliases checks that CNAME records lead to an address in the same answer or in another (RFC
// 1034 §3.6.2). Loops of CNAME records must end, within an answer or over several answers.
func TestAliases(t *testing.T) {
	alias := func(from, to string) dnsmessage.Resource {
		return resource(from+".internal.", &dnsmessage.CNAMEResource{
			CNAME: dnsmessage.MustNewName(to + ".internal."),
		})
	}
	c := resource("c.internal.", &dnsmessage.AResource{A: [4]byte{10, 1, 0, 2}})
	a := forger(t, func(conn net.PacketConn, from net.Addr, m *dnsmessage.Message) {
		m.Answers = map[string][]dnsmessage.Resource{
			"www.internal.":  {alias("www", "web"), alias("web", "c"), c},
			"far.internal.":  {alias("far", "c")},
			"c.internal.":    {c},
			"loop.internal.": {alias("loop", "back"), alias("back", "loop")},
			"ping.internal.": {alias("ping", "pong")},
			"pong.internal.": {alias("pong", "ping")},
			"self.internal.": {alias("self", "self")},
			// Records of other names are not used as the answer.
			"poor.internal.": {c},
		}[m.Questions[0].Name.String()]
		sendMessage(conn, from, m)
	})
	for _, name := range []string{"www", "far"} {
		got := testenv.Ask(t, a, control.Resolve{Name: name, Family: 4})
		assert.Equal(t, addrs("10.1.0.2"), got.Addrs, name)
	}
	for _, name := range []string{"loop", "ping", "self"} {
		_, err := control.Ask(t.Context(), a, control.Resolve{Name: name, Family: 4})
		assert.EqualError(t, err, name+": more than 8 aliases")
	}
	_, err := control.Ask(t.Context(), a, control.Resolve{Name: "poor", Family: 4})
	require.ErrorIs(t, err, control.ErrNoSuchName)
	assert.EqualError(t, err, "poor: no IPv4 address")
}

// TestWrongDNSConfigurations checks that an invalid configuration changes nothing.
func TestWrongDNSConfigurations(t *testing.T) {
	_, b := twoNodes(t)
	testenv.Ask(t, b, control.SetDNS{Names: []control.HostName{{Name: "C", Addrs: addrs("10.1.0.2")}}})
	for want, r := range map[string]control.SetDNS{
		`name "a b": must be letters, digits, - and _, such as db1`: {
			Names: []control.HostName{{Name: "a b"}},
		},
		`zone "a..b": must be a domain name such as internal`: {Zone: "a..b"},
		"server 224.0.0.1: must be the address of a host":     {Servers: addrs("224.0.0.1")},
		"4 servers: must be at most 3": {
			Servers: addrs("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"),
		},
		"address 0.0.0.0 of C: must be a host address, without a zone": {
			Names: []control.HostName{{Name: "C", Addrs: addrs("0.0.0.0")}},
		},
	} {
		_, err := control.Ask(t.Context(), b, r)
		require.ErrorIs(t, err, control.ErrUsage)
		assert.ErrorContains(t, err, want)
	}
	assert.Len(t, testenv.Ask(t, b, control.DNS{}).Names, 1)
	_, err := control.Ask(t.Context(), b, control.Resolve{Name: "C"})
	assert.EqualError(t, err, "C: no such host: the node has no DNS server (`node net names FOLDER` adds one)")
}

// TestFetchByName checks that http and fetch accept names.
func TestFetchByName(t *testing.T) {
	a, b := twoNodes(t)
	testenv.Ask(t, b, control.SetDNS{Names: []control.HostName{{Name: "web", Addrs: addrs("10.0.0.2")}}})
	testenv.Ask(t, a, control.SetDNS{Servers: addrs("10.0.0.2")})
	testenv.Ask(t, b, control.Serve{Port: 80})
	page := testenv.Ask(t, a, control.Fetch{URL: "http://web/"})
	assert.Equal(t, 200, page.Code)
	assert.Contains(t, string(page.Body), "asked for web")
	_, err := control.Ask(t.Context(), a, control.Fetch{URL: "nowhere:80"})
	require.ErrorIs(t, err, control.ErrNoSuchName)
	_, err = control.Ask(t.Context(), a, control.Fetch{URL: "http://10.0.0.256/"})
	assert.ErrorIs(t, err, control.ErrUsage)
}
