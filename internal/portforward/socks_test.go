package portforward_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

// proxied starts a proxy at node a, and node b with an echo server at port 7 and a page at port 80.
func proxied(t *testing.T, r control.Socks) (a, b *operator.Node, at string) {
	t.Helper()
	a, b = operatortest.Two(t, node.Config{})
	require.NoError(t, a.Services.DNS.Configure(control.DNSConfig{
		Names: []control.HostName{
			{Name: "b", Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.2")}},
		},
		Servers: []netip.Addr{netip.MustParseAddr("10.0.0.1")},
	}))
	l, err := b.Node.TCP.Listen(netip.MustParseAddrPort("10.0.0.2:7"), 0)
	require.NoError(t, err)
	web, err := b.Node.TCP.Listen(netip.MustParseAddrPort("10.0.0.2:80"), 0)
	require.NoError(t, err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Method, r.Host)
	})}
	go func() { _ = server.Serve(web) }()
	t.Cleanup(func() { _ = l.Close(); _ = server.Close() })
	fw, err := a.Forwards.Proxy(r)
	require.NoError(t, err)
	return a, b, fw.Addr().String()
}

// client is a SOCKS client's connection. Its methods fail the test on an error.
type client struct {
	*testing.T
	*net.TCPConn
}

func dialProxy(t *testing.T, at string) *client {
	t.Helper()
	c, err := net.Dial("tcp", at)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	conn, _ := c.(*net.TCPConn)
	return &client{t, conn}
}

func (c *client) say(b ...byte) {
	c.Helper()
	_, err := c.Write(b)
	require.NoError(c, err)
}

func (c *client) hear(n int) []byte {
	c.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	require.NoError(c, err)
	return b
}

// request sends a SOCKS request and returns the code of the reply.
func (c *client) request(command byte, address []byte, port uint16) byte {
	c.Helper()
	c.say(binary.BigEndian.AppendUint16(append([]byte{5, command, 0}, address...), port)...)
	reply := c.hear(10)
	assert.Equal(c, byte(5), reply[0])
	return reply[1]
}

func named(name string) []byte { return append([]byte{3, byte(len(name))}, name...) }

func TestRFC1928_4_RequestsWithEveryTypeOfAddress(t *testing.T) {
	_, _, at := proxied(t, control.Socks{})
	for name, address := range map[string][]byte{
		"IPv4": {1, 10, 0, 0, 2}, "name": named("b"), "zone": named("b.internal"),
		"literal": named("10.0.0.2"),
		"mapped":  {4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2},
	} {
		c := dialProxy(t, at)
		c.say(5, 1, 0)
		assert.Equal(t, []byte{5, 0}, c.hear(2), "RFC 1928 §3")
		assert.Equal(t, byte(0), c.request(1, address, 7), name)
		c.say([]byte("hello")...)
		assert.Equal(t, "hello", string(c.hear(5)))
		require.NoError(t, c.CloseWrite(), "a half-close passes")
		rest, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Empty(t, rest)
	}
}

func TestRFC1928_6_Replies(t *testing.T) {
	_, _, at := proxied(t, control.Socks{})
	for _, c := range []struct {
		want    byte
		command byte
		address []byte
		port    uint16
	}{
		{5, 1, []byte{1, 10, 0, 0, 2}, 9},    // the connection is refused
		{4, 1, []byte{1, 192, 168, 9, 9}, 9}, // there is no route to the host
		{4, 1, named("nobody"), 80},          // the name is unknown
		{7, 2, []byte{1, 10, 0, 0, 2}, 7},    // the command is BIND
		{2, 1, []byte{1, 224, 0, 0, 1}, 7},   // the address is not a host's
	} {
		k := dialProxy(t, at)
		k.say(5, 2, 0, 2)
		k.hear(2)
		assert.Equal(t, c.want, k.request(c.command, c.address, c.port), "%v", c)
		_, err := k.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	k := dialProxy(t, at)
	k.say(5, 1, 0, 5, 1, 0, 9)
	assert.Equal(t, []byte{5, 0, 5, 8}, k.hear(4), "an unknown type of address: RFC 1928 §5")
	k = dialProxy(t, at)
	k.say(5, 1, 1)
	assert.Equal(t, []byte{5, 0xff}, k.hear(2), "no common method")
	k = dialProxy(t, at)
	k.say(4, 1, 0, 7, 10, 0, 0, 2, 0)
	assert.Equal(t, []byte{0, 91}, k.hear(2), "SOCKS4")
}

// RFC 9110 §11.7.2 requires the same for HTTP.
func TestRFC1929_2_Passwords(t *testing.T) {
	_, _, at := proxied(t, control.Socks{User: "u", Password: "secret"})
	k := dialProxy(t, at)
	k.say(5, 1, 0)
	assert.Equal(t, []byte{5, 0xff}, k.hear(2))
	k = dialProxy(t, at)
	k.say(5, 2, 0, 2)
	assert.Equal(t, []byte{5, 2}, k.hear(2))
	k.say(append([]byte{1, 1, 'u', 6}, "secret"...)...)
	assert.Equal(t, []byte{1, 0}, k.hear(2))
	assert.Equal(t, byte(0), k.request(1, named("b"), 7))
	k = dialProxy(t, at)
	k.say(5, 1, 2)
	k.hear(2)
	k.say(append([]byte{1, 1, 'u', 5}, "wrong"...)...)
	assert.Equal(t, []byte{1, 1}, k.hear(2))
	for user, want := range map[*url.Userinfo]int{
		url.UserPassword("u", "secret"): 200, url.UserPassword("u", "no"): 407, nil: 407,
	} {
		resp, err := httpThrough(at, user).Get("http://b/")
		require.NoError(t, err)
		assert.Equal(t, want, resp.StatusCode)
		_ = resp.Body.Close()
	}
}

func httpThrough(at string, user *url.Userinfo) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		Proxy:             http.ProxyURL(&url.URL{Scheme: "http", Host: at, User: user}),
	}}
}

func TestRFC1928_7_Datagrams(t *testing.T) {
	_, b, at := proxied(t, control.Socks{})
	server, err := b.Node.Packets.Listen(netip.MustParseAddrPort("10.0.0.2:53"))
	require.NoError(t, err)
	k := dialProxy(t, at)
	k.say(5, 1, 0)
	k.hear(2)
	k.say(5, 3, 0, 1, 0, 0, 0, 0, 0, 0)
	reply := k.hear(10)
	require.Equal(t, byte(0), reply[1])
	relay := netip.AddrPortFrom(netip.AddrFrom4([4]byte(reply[4:])), binary.BigEndian.Uint16(reply[8:]))
	u, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(relay))
	require.NoError(t, err)
	defer func() { _ = u.Close() }()
	_, err = u.Write([]byte{0, 0, 1, 1, 10, 0, 0, 2, 0, 53, 'x'}) // a fragment, which is dropped
	require.NoError(t, err)
	_, err = u.Write(append(append([]byte{0, 0, 0}, named("b")...), 0, 53, 'h', 'i'))
	require.NoError(t, err)
	p := make([]byte, 100)
	n, from, err := server.ReadFromAddrPort(p)
	require.NoError(t, err)
	assert.Equal(t, "hi", string(p[:n]))
	_, err = server.WriteToAddrPort([]byte("answer"), from)
	require.NoError(t, err)
	n, err = u.Read(p)
	require.NoError(t, err)
	assert.Equal(t, append([]byte{0, 0, 0, 1, 10, 0, 0, 2, 0, 53}, "answer"...), p[:n])
	require.NoError(t, k.Close())
	require.NoError(t, server.Close())
}

// RFC 9110 §15.6.3 and §15.6.5 define the answers about hosts that cannot be reached.
func TestRFC9110_9_3_6_HTTPThroughTheProxy(t *testing.T) {
	a, _, at := proxied(t, control.Socks{})
	resp, err := httpThrough(at, nil).Get("http://b/page")
	require.NoError(t, err)
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	assert.Equal(t, "GET b", string(body))

	k := dialProxy(t, at)
	k.say([]byte("CONNECT b:7 HTTP/1.1\r\nHost: b:7\r\n\r\nearly")...)
	r := bufio.NewReader(k)
	status, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	assert.Equal(t, 200, status.StatusCode)
	early := make([]byte, 5)
	_, err = io.ReadFull(r, early)
	require.NoError(t, err)
	assert.Equal(t, "early", string(early))
	require.NoError(t, k.CloseWrite())
	_, err = io.ReadAll(r)
	require.NoError(t, err)

	for target, want := range map[string]int{"nobody:80": 502, "10.0.0.2:9": 502, "b": 400} {
		k := dialProxy(t, at)
		k.say([]byte("CONNECT " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")...)
		status, err := http.ReadResponse(bufio.NewReader(k), nil)
		require.NoError(t, err)
		text, _ := io.ReadAll(status.Body)
		assert.Equal(t, want, status.StatusCode, target)
		assert.Equal(t, 1, strings.Count(string(text), "\n"), "one line: %s", text)
		_ = k.Close()
	}
	door := forwards(t, a)[0]
	assert.Equal(t, control.DoorSocks, door.Kind)
	assert.NotZero(t, door.In)
}

func TestSilentClientsDoNotBlockOthers(t *testing.T) {
	_, _, at := proxied(t, control.Socks{})
	for range 1000 {
		c, err := net.Dial("tcp", at)
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
	}
	k := dialProxy(t, at)
	k.say(5, 1, 0)
	k.hear(2)
	assert.Equal(t, byte(0), k.request(1, named("b"), 7))
}

func TestWrongProxyRequests(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	for _, r := range []control.Socks{
		{User: "u"},
		{Password: "p"},
		{On: netip.MustParseAddr("224.0.0.1")},
		{User: strings.Repeat("u", 256), Password: "p"},
	} {
		_, err := a.Forwards.Proxy(r)
		require.ErrorIs(t, err, control.ErrUsage)
	}
}
