package tidepool_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// withGateway starts 10.9.0.2, whose default route leads to the gateway 10.9.0.1.
func withGateway(t *testing.T) (client, gateway *tidepool.Node) {
	t.Helper()
	x, y := tidepool.Pipe(0)
	return open(t, host(tidepool.Config{}, "10.9.0.2/24", "10.9.0.1", x)),
		open(t, host(tidepool.Config{}, "10.9.0.1/24", "", y))
}

func TestForwarderAcceptsEveryAddress(t *testing.T) {
	client, gateway := withGateway(t)
	var mu sync.Mutex
	var asked []netip.AddrPort
	require.NoError(t, gateway.Forward(func(r *tidepool.Request) {
		mu.Lock()
		asked = append(asked, r.Local())
		mu.Unlock()
		assert.Equal(t, addr("10.9.0.2"), r.Remote().Addr())
		if r.Local().Port() == 25 {
			r.Reject()
			return
		}
		c, err := r.Accept()
		if !assert.NoError(t, err) {
			return
		}
		_, err = r.Accept()
		assert.ErrorIs(t, err, net.ErrClosed, "the request was already accepted")
		defer c.Close()
		assert.Equal(t, r.Local().String(), c.LocalAddr().String())
		_, _ = io.WriteString(c, c.LocalAddr().String())
	}))
	l, err := gateway.Listen("tcp", ":22")
	require.NoError(t, err)
	defer l.Close()
	// A listener takes precedence, but only on the node's own address.
	c, err := client.Dial("tcp", "10.9.0.1:22")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	for _, to := range []string{"93.184.216.34:80", "10.9.0.1:443", "1.1.1.1:22"} {
		c, err := client.Dial("tcp", to)
		require.NoError(t, err)
		said, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Equal(t, to, string(said))
		require.NoError(t, c.Close())
	}
	_, err = client.Dial("tcp", "8.8.8.8:25")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, gateway.Forward(nil))
	_, err = client.Dial("tcp", "10.9.0.1:443")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, asked, 4)
}

// After the forwarder closes, it accepts no more connections. An accepted connection stays open.
func TestConnectionOutlivesForwarder(t *testing.T) {
	client, gateway := withGateway(t)
	require.NoError(t, gateway.Forward(func(r *tidepool.Request) {
		if c, err := r.Accept(); assert.NoError(t, err) {
			_, _ = io.Copy(c, c)
			c.Close()
		}
	}))
	c, err := client.Dial("tcp", "8.8.8.8:53")
	require.NoError(t, err)
	require.NoError(t, gateway.Forward(nil))
	_, err = io.WriteString(c, "still there?")
	require.NoError(t, err)
	require.NoError(t, c.(*tidepool.Conn).CloseWrite())
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	said, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Equal(t, "still there?", string(said))
	d := tidepool.Dialer{Node: client, Timeout: 50 * time.Millisecond}
	_, err = d.Dial("tcp", "8.8.8.8:54")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// A router's forwarder receives the connections that the router has no route for.
func TestForwarderOfARouter(t *testing.T) {
	a, router, c := line(t, tidepool.Config{})
	require.NoError(t, router.Forward(func(r *tidepool.Request) {
		if conn, err := r.Accept(); assert.NoError(t, err) {
			conn.Close()
		}
	}))
	client, server := dial(t, c, a, "10.0.0.1:80")
	assert.Equal(t, "10.1.0.2", server.RemoteAddr().(*net.TCPAddr).IP.String())
	require.NoError(t, client.Close())
	conn, err := c.Dial("tcp", "192.0.2.1:7")
	require.NoError(t, err)
	_, err = io.ReadAll(conn)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

// A request that is not decided is dropped, and offered again when its SYN is retransmitted (RFC
// 6298 §5.5).
func TestUndecidedRequestIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock tidepool.Clock
		a, b := pair(t, tidepool.Config{Clock: &clock})
		asked := 0
		require.NoError(t, a.Forward(func(r *tidepool.Request) {
			if asked++; asked == 3 {
				r.Reject()
			}
		}))
		done := make(chan error, 1)
		go func() {
			_, err := b.Dial("tcp", "10.0.0.1:80")
			done <- err
		}()
		for _, step := range []time.Duration{0, time.Second, 2 * time.Second} {
			clock.Advance(step)
			synctest.Wait()
		}
		assert.Equal(t, 3, asked)
		require.ErrorIs(t, <-done, syscall.ECONNREFUSED)
	})
}

// syn4 returns a SYN from a port of 10.0.0.2 to 10.0.0.1:80.
func syn4(port uint16) []byte {
	p := make([]byte, 40)
	p[0], p[3], p[8], p[9] = 0x45, 40, 64, 6
	copy(p[12:], []byte{10, 0, 0, 2, 10, 0, 0, 1})
	fixHeader(p)
	binary.BigEndian.PutUint16(p[20:], port)
	p[23], p[32], p[33], p[34] = 80, 5<<4, syn, 0xff
	sum := uint32(6 + 20)
	for i := 12; i < 40; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(p[36:], ^uint16(sum))
	return p
}

// RFC 4987 §2: during a SYN flood from an unused address, accepting uses no more goroutines than
// the limit. Later connections are accepted again.
func TestSYNFloodIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock tidepool.Clock
		x, wire := tidepool.Pipe(4096)
		n := open(t, host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x))
		var asked, failed atomic.Int64
		require.NoError(t, n.Forward(func(r *tidepool.Request) {
			asked.Add(1)
			if _, err := r.Accept(); err != nil {
				failed.Add(1)
			}
		}))
		answer := make([]byte, 100)
		for port := range uint16(3000) {
			_, err := wire.Write(syn4(1000 + port))
			require.NoError(t, err)
			for ok := true; ok; _, ok = wire.TryRead(answer) {
			}
		}
		synctest.Wait()
		assert.EqualValues(t, 64, asked.Load(), "cookies answer the others")
		assert.Zero(t, failed.Load())
		clock.Advance(10 * time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 64, failed.Load(), "no client completed a handshake")
		_, err := wire.Write(syn4(9))
		require.NoError(t, err)
		synctest.Wait()
		assert.EqualValues(t, 65, asked.Load())
		require.NoError(t, n.Close())
		synctest.Wait()
	})
}

// ask sends a datagram and returns the reply.
func ask(t *testing.T, from *tidepool.Node, to, text string) (string, error) {
	t.Helper()
	u, err := from.Dial("udp", to)
	require.NoError(t, err)
	defer u.Close()
	_, err = u.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, u.SetReadDeadline(time.Now().Add(patience)))
	p := make([]byte, 100)
	n, err := u.Read(p)
	return string(p[:n]), err
}

func TestUDPForwarderAcceptsEveryAddress(t *testing.T) {
	client, gateway := withGateway(t)
	var asked atomic.Int64
	require.NoError(t, gateway.ForwardUDP(func(r *tidepool.UDPRequest) {
		asked.Add(1)
		assert.Equal(t, addr("10.9.0.2"), r.Remote().Addr())
		if r.Local().Port() == 25 {
			r.Reject()
			return
		}
		u, err := r.Accept()
		if !assert.NoError(t, err) {
			return
		}
		defer u.Close()
		_, err = r.Accept()
		assert.ErrorIs(t, err, net.ErrClosed, "the flow was already accepted")
		assert.Equal(t, r.Local().String(), u.LocalAddr().String())
		assert.Equal(t, r.Remote().String(), u.RemoteAddr().String())
		p := make([]byte, 100)
		for range 2 {
			n, err := u.Read(p)
			if err != nil {
				return
			}
			_, err = fmt.Fprintf(u, "%s of %v", p[:n], u.LocalAddr())
			assert.NoError(t, err)
		}
	}))
	own, err := gateway.ListenPacket("udp", ":22")
	require.NoError(t, err)
	go func() {
		p := make([]byte, 100)
		n, from, err := own.ReadFrom(p)
		if assert.NoError(t, err) {
			_, err = own.WriteTo(p[:n], from)
			assert.NoError(t, err)
		}
	}()
	said, err := ask(t, client, "10.9.0.1:22", "socket")
	require.NoError(t, err)
	assert.Equal(t, "socket", said, "a socket takes precedence")
	for _, to := range []string{"9.9.9.9:53", "10.9.0.1:443", "1.1.1.1:22"} {
		u, err := client.Dial("udp", to)
		require.NoError(t, err)
		p := make([]byte, 100)
		for _, text := range []string{"one", "two"} { // the second goes to the flow's socket
			_, err = u.Write([]byte(text))
			require.NoError(t, err)
			n, err := u.Read(p)
			require.NoError(t, err)
			assert.Equal(t, text+" of "+to, string(p[:n]))
		}
		require.NoError(t, u.Close())
	}
	assert.EqualValues(t, 3, asked.Load())
	_, err = ask(t, client, "8.8.8.8:25", "mail")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, gateway.ForwardUDP(nil))
	_, err = ask(t, client, "10.9.0.1:443", "none")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.EqualValues(t, 4, asked.Load())
	require.NoError(t, own.Close())
}

// After the forwarder closes, it accepts no more flows. An accepted flow continues.
func TestFlowOutlivesForwarder(t *testing.T) {
	client, gateway := withGateway(t)
	var asked atomic.Int64
	require.NoError(t, gateway.ForwardUDP(func(r *tidepool.UDPRequest) {
		asked.Add(1)
		u, err := r.Accept()
		if !assert.NoError(t, err) {
			return
		}
		p := make([]byte, 100)
		for {
			n, err := u.Read(p)
			if err != nil {
				return
			}
			_, err = u.Write(p[:n])
			assert.NoError(t, err)
		}
	}))
	u, err := client.Dial("udp", "9.9.9.9:53")
	require.NoError(t, err)
	p := make([]byte, 100)
	for _, text := range []string{"before", "after"} {
		_, err = u.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, u.SetReadDeadline(time.Now().Add(patience)))
		n, err := u.Read(p)
		require.NoError(t, err)
		assert.Equal(t, text, string(p[:n]))
		require.NoError(t, gateway.ForwardUDP(nil))
	}
	assert.EqualValues(t, 1, asked.Load())
}

// Four datagrams wait until their flow is accepted. After its socket is closed, the next datagram
// is a new request.
func TestDatagramsWaitForTheDecision(t *testing.T) {
	var clock tidepool.Clock
	a, b := pair(t, tidepool.Config{Clock: &clock})
	requests := make(chan *tidepool.UDPRequest)
	require.NoError(t, a.ForwardUDP(func(r *tidepool.UDPRequest) {
		requests <- r
		<-requests // decided below
	}))
	u, err := b.ListenUDP(netip.AddrPort{})
	require.NoError(t, err)
	to := netip.MustParseAddrPort("10.0.0.1:53")
	for i := range 6 {
		_, err := u.WriteToAddrPort([]byte{byte('a' + i)}, to)
		require.NoError(t, err)
	}
	r := <-requests
	assert.Equal(t, to, r.Local())
	c, err := r.Accept()
	require.NoError(t, err)
	requests <- nil
	_, err = u.WriteToAddrPort([]byte("z"), to)
	require.NoError(t, err)
	got := ""
	for range 5 {
		p := make([]byte, 10)
		n, err := c.Read(p)
		require.NoError(t, err)
		got += string(p[:n])
	}
	assert.Equal(t, "abcdz", got, "four wait, then the flow has its socket")
	require.NoError(t, c.Close())
	_, err = u.WriteToAddrPort([]byte("again"), to)
	require.NoError(t, err)
	r = <-requests
	r.Drop()
	requests <- nil
	require.NoError(t, u.Close())
}

// TestPublishAndExpose connects to a service of this machine across the virtual network: exposed on
// one node, published from the other.
func TestPublishAndExpose(t *testing.T) {
	p, q := tidepool.Pipe(0)
	open := func(addr string, link *tidepool.PipeEnd) *tidepool.Node {
		n, err := tidepool.Open(tidepool.Config{
			Interfaces: []tidepool.Interface{{Addr: netip.MustParsePrefix(addr), Link: link}},
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	a, b := open("10.0.0.1/24", p), open("10.0.0.2/24", q)
	service, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer service.Close()
	in, err := b.Expose("tcp", 80, service.Addr().String())
	require.NoError(t, err)
	out, err := a.Publish("tcp4", "127.0.0.1:0", "10.0.0.2:80")
	require.NoError(t, err)
	client, err := net.Dial("tcp", out.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	server, err := service.Accept()
	require.NoError(t, err)
	_, err = server.Write([]byte("hello"))
	require.NoError(t, err)
	require.NoError(t, server.Close())
	text, err := io.ReadAll(client)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(text))
	assert.Equal(t, uint64(5), out.Info().Out)
	assert.Equal(t, uint64(5), in.Info().In)
	require.NoError(t, out.Close())
	require.ErrorIs(t, out.Close(), net.ErrClosed)
	require.NoError(t, in.Cut())

	_, err = a.Publish("tcp", service.Addr().String(), "10.0.0.2:80")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = a.Publish("tcp", "here:80", "10.0.0.2:80")
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = a.Publish("sctp", ":0", "10.0.0.2:80")
	require.Error(t, err)
	_, err = a.Expose("sctp", 80, "127.0.0.1:80")
	require.ErrorAs(t, err, new(net.UnknownNetworkError))
	var zero tidepool.Door
	require.ErrorIs(t, zero.Close(), net.ErrClosed)
	require.ErrorIs(t, zero.Cut(), net.ErrClosed)
	assert.Zero(t, zero.Info())
}
