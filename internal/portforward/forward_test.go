package portforward_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/portforward"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forwards lists a node's port forwards.
func forwards(t *testing.T, n *operator.Node) []control.Door {
	t.Helper()
	return testenv.Ask(t, n, control.Doors{})
}

// published returns a forward to a listener of another node, and that listener.
func published(t *testing.T) (fw *portforward.Forward, l *node.Listener) {
	t.Helper()
	a, b := operatortest.Two(t, node.Config{})
	return publishedTo(t, a, b)
}

func publishedTo(t *testing.T, a, b *operator.Node) (fw *portforward.Forward, l *node.Listener) {
	t.Helper()
	l, err := b.Node.TCP.Listen(netip.MustParseAddrPort("10.0.0.2:80"), 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	a.Forwards.Hurry()
	fw, err = a.Forwards.Publish(control.Publish{To: netip.MustParseAddrPort("10.0.0.2:80")})
	require.NoError(t, err)
	return fw, l
}

// through opens a connection through a published port.
func through(t *testing.T, fw *portforward.Forward, l *node.Listener) (client *net.TCPConn, server *node.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", fw.Addr().String())
	require.NoError(t, err)
	client, _ = c.(*net.TCPConn)
	t.Cleanup(func() { _ = client.Close() })
	server, err = l.AcceptTCP()
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	limit(t, client)
	limit(t, server)
	return client, server
}

func limit(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
}

// exposed returns a node, and another node's forward to a service of this machine.
func exposed(t *testing.T) (client *operator.Node, fw *portforward.Forward, service *net.TCPListener) {
	t.Helper()
	a, b := operatortest.Two(t, node.Config{})
	service = listenHere(t)
	b.Forwards.Hurry()
	fw, err := b.Forwards.Expose(control.Expose{Port: 80, To: service.Addr().String()})
	require.NoError(t, err)
	return a, fw, service
}

func listenHere(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	tl, _ := l.(*net.TCPListener)
	return tl
}

func throughExposed(t *testing.T, n *operator.Node, service *net.TCPListener) (*node.Conn, *net.TCPConn) {
	t.Helper()
	c, err := n.Node.TCP.Dial(t.Context(), netip.MustParseAddrPort("10.0.0.2:80"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	s, err := service.AcceptTCP()
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	limit(t, c)
	limit(t, s)
	return c, s
}

// closing is either end of a flow.
type closing interface {
	net.Conn
	CloseWrite() error
}

// halfClosed closes one direction after the other; each carries data until it is closed.
func halfClosed(t *testing.T, client, server closing) {
	t.Helper()
	_, err := client.Write([]byte("question"))
	require.NoError(t, err)
	require.NoError(t, client.CloseWrite())
	text, err := io.ReadAll(server)
	require.NoError(t, err)
	assert.Equal(t, "question", string(text))
	_, err = server.Write([]byte("answer"))
	require.NoError(t, err)
	require.NoError(t, server.CloseWrite())
	text, err = io.ReadAll(client)
	require.NoError(t, err)
	assert.Equal(t, "answer", string(text))
}

// gone waits until the forward has no flows.
func gone(t *testing.T, fw *portforward.Forward) control.Door {
	t.Helper()
	require.Eventually(t, func() bool { return fw.State().Open == 0 }, 20*time.Second,
		5*time.Millisecond)
	return fw.State()
}

func TestPublishPassesHalfClosesOn(t *testing.T) {
	fw, l := published(t)
	assert.True(t, netip.MustParseAddrPort(fw.Addr().String()).Addr().IsLoopback(),
		"other machines cannot connect by default")
	client, server := through(t, fw, l)
	halfClosed(t, client, server)
	client, server = through(t, fw, l)
	halfClosed(t, server, client) // in the second case, the server closes first
	s := gone(t, fw)
	assert.Equal(t, uint64(2), s.Opened)
	assert.Zero(t, s.Failed, s.Problem)
	assert.Equal(t, uint64(14), s.In)
	assert.Equal(t, uint64(14), s.Out)
}

func TestExposePassesHalfClosesOn(t *testing.T) {
	n, fw, service := exposed(t)
	client, server := throughExposed(t, n, service)
	halfClosed(t, client, server)
	client, server = throughExposed(t, n, service)
	halfClosed(t, server, client)
	s := gone(t, fw)
	assert.Zero(t, s.Failed, s.Problem)
	assert.Equal(t, uint64(14), s.In)
}

func reset(t *testing.T, c net.Conn) {
	t.Helper()
	if v, ok := c.(*node.Conn); ok {
		v.Abort()
		return
	}
	m, _ := c.(*net.TCPConn)
	require.NoError(t, m.SetLinger(0))
	require.NoError(t, m.Close())
}

// A reset passes through, from each end of both kinds of forward.
func TestForwardsPassResetsOn(t *testing.T) {
	everyWay(t, func(t *testing.T, fw *portforward.Forward, by, heard closing) {
		_, err := by.Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadFull(heard, make([]byte, 1))
		require.NoError(t, err)
		reset(t, by)
		_, err = heard.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		s := gone(t, fw)
		assert.Equal(t, uint64(1), s.Failed)
		assert.Equal(t, "connection reset by peer", s.Problem)
	})
}

// A reset after a FIN ends the flow, even if the other end sends nothing that would show it.
func TestResetAfterFINEndsTheFlow(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it does not tell")
	}
	everyWay(t, func(t *testing.T, fw *portforward.Forward, by, heard closing) {
		_, err := by.Write([]byte("question"))
		require.NoError(t, err)
		require.NoError(t, by.CloseWrite())
		text, err := io.ReadAll(heard)
		require.NoError(t, err)
		assert.Equal(t, "question", string(text))
		assert.Equal(t, 1, fw.State().Open, "an answer may come yet")
		reset(t, by)
		s := gone(t, fw)
		assert.Equal(t, uint64(1), s.Failed)
		assert.Equal(t, "connection reset by peer", s.Problem)
		require.Eventually(t, func() bool {
			_, err := heard.Write([]byte("answer"))
			return err != nil
		}, 20*time.Second, time.Millisecond, "the other end was reset")
	})
}

// Data that a service sent before it died arrives first, and then the reset.
func TestServiceResetsMidStream(t *testing.T) {
	everyWay(t, func(t *testing.T, fw *portforward.Forward, by, heard closing) {
		said := make([]byte, 1<<20)
		fill(said)
		var wrote sync.WaitGroup
		wrote.Go(func() {
			k, err := by.Write(said)
			assert.True(t, k == len(said) && err == nil, "%d %v", k, err)
		})
		got := make([]byte, len(said))
		_, err := io.ReadFull(heard, got)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(said, got))
		wrote.Wait()
		reset(t, by)
		n, err := heard.Read(got)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		assert.Zero(t, n)
		assert.Equal(t, uint64(1), gone(t, fw).Failed)
	})
}

// everyWay runs a test from each end of both kinds of forward, and of one that goroutines relay.
func everyWay(t *testing.T, check func(t *testing.T, fw *portforward.Forward, by, heard closing)) {
	t.Run("publish, client", func(t *testing.T) {
		fw, l := published(t)
		client, server := through(t, fw, l)
		check(t, fw, client, server)
	})
	t.Run("publish, server", func(t *testing.T) {
		fw, l := published(t)
		client, server := through(t, fw, l)
		check(t, fw, server, client)
	})
	t.Run("expose, client", func(t *testing.T) {
		n, fw, service := exposed(t)
		client, server := throughExposed(t, n, service)
		check(t, fw, client, server)
	})
	t.Run("expose, server", func(t *testing.T) {
		n, fw, service := exposed(t)
		client, server := throughExposed(t, n, service)
		check(t, fw, server, client)
	})
	copied := func(t *testing.T) (fw *portforward.Forward, client *net.TCPConn, server *node.Conn) {
		a, b := operatortest.Two(t, node.Config{})
		a.Forwards.Copy()
		fw, l := publishedTo(t, a, b)
		client, server = through(t, fw, l)
		return fw, client, server
	}
	t.Run("client, by goroutines", func(t *testing.T) {
		fw, client, server := copied(t)
		check(t, fw, client, server)
	})
	t.Run("server, by goroutines", func(t *testing.T) {
		fw, client, server := copied(t)
		check(t, fw, server, client)
	})
}

// A server answers and resets the connection because it has not read everything: the answer
// arrives.
func TestDataBeforeAResetArrives(t *testing.T) {
	fw, l := published(t)
	client, server := through(t, fw, l)
	_, err := client.Write([]byte("a long upload"))
	require.NoError(t, err)
	// The FIN arrives after the upload, so wait for the upload.
	_, err = io.ReadFull(server, make([]byte, 1))
	require.NoError(t, err)
	_, err = server.Write([]byte("413"))
	require.NoError(t, err)
	got := make([]byte, 3)
	_, err = io.ReadFull(client, got)
	require.NoError(t, err)
	assert.Equal(t, "413", string(got))
	require.NoError(t, server.Close()) // RFC 2525 §2.17: with unread data, Close resets
	_, err = client.Read(got)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	gone(t, fw)
}

// A slow reader slows its writer, and only the buffers of the two connections fill.
func TestSlowReaderSlowsItsWriter(t *testing.T) {
	t.Parallel()
	fw, l := published(t)
	client, server := through(t, fw, l)
	require.NoError(t, client.SetReadBuffer(64<<10))
	sum := sha256.New()
	piece := make([]byte, 1<<20)
	fill(piece)
	written := 0
	require.NoError(t, server.SetWriteDeadline(time.Now().Add(time.Second)))
	for {
		k, err := server.Write(piece)
		sum.Write(piece[:k])
		written += k
		if err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			break
		}
		require.Less(t, written, 64<<20, "bytes are accepted while the peer does not read")
	}
	limit(t, server)
	require.NoError(t, server.CloseWrite())
	got := sha256.New()
	k, err := io.Copy(got, client)
	require.NoError(t, err)
	assert.Equal(t, int64(written), k)
	assert.Equal(t, sum.Sum(nil), got.Sum(nil))
}

// If a service accepts a connection and hangs, the flow still ends when its client leaves.
func TestAResetEndsAFlowWhoseReaderHangs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it does not tell")
	}
	everyWay(t, func(t *testing.T, fw *portforward.Forward, by, heard closing) {
		stuff(t, by)
		reset(t, by)
		s := gone(t, fw)
		assert.Equal(t, uint64(1), s.Failed)
		assert.Equal(t, "connection reset by peer", s.Problem)
		_, err := io.Copy(io.Discard, heard)
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

// A reader gets everything after a pause that is longer than stallCheck.
func TestPausedReaderGetsEverything(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, _ *portforward.Forward, by, heard closing) {
		said := stuff(t, by)
		require.NoError(t, by.CloseWrite())
		k, err := io.Copy(io.Discard, heard)
		require.NoError(t, err)
		assert.Equal(t, said, k)
	})
}

// stuff writes until the connection has accepted nothing for a while, and returns the number of
// bytes that it accepted.
func stuff(t *testing.T, c closing) (bytes int64) {
	t.Helper()
	piece := make([]byte, 1<<20)
	for {
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
		k, err := c.Write(piece)
		bytes += int64(k)
		if err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			limit(t, c)
			return bytes
		}
		require.Less(t, bytes, int64(64<<20), "bytes are accepted while the peer does not read")
	}
}

func fill(p []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range p {
		p[i] = byte(r.Uint32())
	}
}

func TestNoServiceBehindAForward(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	said := make(chan string, 10)
	defer a.Node.Watchers.Watch(func(e control.Event) {
		if m, ok := e.(control.Message); ok {
			said <- m.Text
		}
	})()
	fw, err := a.Forwards.Publish(control.Publish{To: netip.MustParseAddrPort("10.0.0.2:81")})
	require.NoError(t, err)
	c, err := net.Dial("tcp", fw.Addr().String())
	if err == nil {
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
	assert.Regexp(t, fmt.Sprintf("^publish %v -> 10.0.0.2:81: 127.0.0.1:[0-9]+: "+
		"connection refused$", fw.Addr()), <-said)

	service := listenHere(t)
	require.NoError(t, service.Close())
	e, err := b.Forwards.Expose(control.Expose{Port: 80, To: service.Addr().String()})
	require.NoError(t, err)
	_, err = a.Node.TCP.Dial(t.Context(), netip.MustParseAddrPort("10.0.0.2:80"))
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "not taken, and then reset")
	assert.Equal(t, "connection refused", gone(t, e).Problem)
	require.NoError(t, e.Close(false))
	_, err = b.Node.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:80"), 0)
	require.NoError(t, err, "the port is free again")
}

// A client's reset or FIN ends the dial to the virtual host, even with data unread.
func TestDisconnectedClientEndsItsDial(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: elsewhere what was said hides the FIN behind it")
	}
	a, _ := testenv.TwoNodes(t) // the other host does not exist
	n := operatortest.Start(t, node.Config{}, a)
	n.Forwards.Hurry()
	fw, err := n.Forwards.Publish(control.Publish{To: netip.MustParseAddrPort("10.0.0.2:80")})
	require.NoError(t, err)
	var clients []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", fw.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		limit(t, c)
		_, err = c.Write([]byte("question"))
		require.NoError(t, err)
		clients = append(clients, c)
	}
	open := func(want int) func() bool {
		return func() bool {
			socks := testenv.Ask(t, n, control.Sockets{})
			return len(socks) == want && fw.State().Open == want
		}
	}
	require.Eventually(t, open(3), 20*time.Second, 5*time.Millisecond)
	reset(t, clients[0])
	require.Eventually(t, open(2), 20*time.Second, 5*time.Millisecond)
	t.Log("# one is gone, the other waits for an answer, but not for ever")
	half, _ := clients[2].(*net.TCPConn)
	require.NoError(t, half.CloseWrite())
	require.NoError(t, clients[1].Close())
	_, err = half.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Eventually(t, open(0), 20*time.Second, 5*time.Millisecond)
	assert.Equal(t, "the client disconnected before the virtual host answered", fw.State().Problem)
}

// The host is unreachable: the forward tries as long as TCP does, because a restarting router
// reports the same (RFC 1122 §4.2.3.9). Then the client is reset, and the forward reports the
// reason.
func TestAnUnreachableHostBehindAForward(t *testing.T) {
	t.Parallel()
	fa, fb, _ := testenv.ThreeNodes(t)
	fa.TCP.RTOMax = 20 * time.Millisecond
	a := operatortest.Start(t, node.Config{}, fa)
	operatortest.Start(t, node.Config{}, fb)
	fw, err := a.Forwards.Publish(control.Publish{To: netip.MustParseAddrPort("10.9.0.1:80")})
	require.NoError(t, err)
	c, err := net.Dial("tcp", fw.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	assert.Equal(t, "connection timed out: network unreachable", gone(t, fw).Problem)
}

func TestForwardsThatCannotOpen(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	taken := listenHere(t)
	at := netip.MustParseAddrPort(taken.Addr().String())
	to := netip.MustParseAddrPort("10.0.0.2:80")
	_, err := a.Do(t.Context(), control.Publish{Port: at.Port(), To: to})
	require.ErrorIs(t, err, control.ErrPortInUse)
	require.EqualError(t, err, fmt.Sprintf("publish %v: address already in use", at))
	_, err = a.Do(t.Context(), control.Publish{Port: 8080, To: netip.AddrPortFrom(to.Addr(), 0)})
	require.ErrorIs(t, err, control.ErrUsage)
	_, err = a.Do(t.Context(), control.Publish{On: netip.MustParseAddr("192.0.2.1"), To: to})
	require.ErrorIs(t, err, control.ErrUsage)
	require.EqualError(t, err, "publish 192.0.2.1:0: cannot assign requested address")
	_, err = a.Do(t.Context(), control.Publish{
		Port: 0, To: to, UDP: true,
		On: netip.MustParseAddr("192.0.2.1"),
	})
	require.ErrorIs(t, err, control.ErrUsage)
	for _, where := range []string{"", "x", "127.0.0.1", ":80", "127.0.0.1:0", "h:99999"} {
		_, err = a.Do(t.Context(), control.Expose{Port: 80, To: where})
		require.ErrorIs(t, err, control.ErrUsage, where)
	}
	_, err = a.Do(t.Context(), control.Expose{To: "127.0.0.1:80"})
	require.ErrorIs(t, err, control.ErrUsage)
	testenv.Ask(t, a, control.Expose{Port: 80, To: "127.0.0.1:80"})
	_, err = a.Do(t.Context(), control.Expose{Port: 80, To: "127.0.0.1:81"})
	require.ErrorIs(t, err, control.ErrPortInUse)
	_, err = a.Do(t.Context(), control.CloseDoor{ID: 77})
	require.ErrorIs(t, err, control.ErrNoSuchDoor)
	_, err = a.Do(t.Context(), control.Splice{Addr: to.Addr()})
	require.ErrorIs(t, err, control.ErrUsage)
	assert.Len(t, forwards(t, a), 1)
}

// Closing a node resets the connections through its forwards.
func TestNodeCloseClosesForwards(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	fw, l := publishedTo(t, a, b)
	client, server := through(t, fw, l)
	require.NoError(t, a.Close())
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	_, err = server.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	_, err = net.Dial("tcp", fw.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = a.Forwards.Publish(control.Publish{To: netip.MustParseAddrPort("10.0.0.2:80")})
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestClosingAForward(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	fw, l := publishedTo(t, a, b)
	client, server := through(t, fw, l)
	id := fw.State().ID
	testenv.Ask(t, a, control.CloseDoor{ID: id})
	_, err := net.Dial("tcp", fw.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = client.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(server, make([]byte, 1))
	require.NoError(t, err, "open connections stay open")
	list := forwards(t, a)
	require.Len(t, list, 1)
	assert.True(t, list[0].Closing)
	err = control.Order(t.Context(), a, control.CloseDoor{ID: id})
	require.ErrorIs(t, err, control.ErrClosed)
	require.ErrorContains(t, err, "open flows: 1; --cut resets them")
	require.NoError(t, control.Order(t.Context(), a,
		control.CloseDoor{ID: id, Cut: true}))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	gone(t, fw)
	require.Eventually(t, func() bool { return len(forwards(t, a)) == 0 }, 10*time.Second,
		time.Millisecond)
}

// A port is free as soon as its forward is closed, even if connections through it are open.
func TestAPortIsFreeAgain(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	fw, l := publishedTo(t, a, b)
	at := netip.MustParseAddrPort(fw.Addr().String())
	one, other := through(t, fw, l)
	halfClosed(t, one, other)
	client, server := through(t, fw, l)
	require.NoError(t, fw.Close(false))
	again, err := a.Forwards.Publish(control.Publish{
		Port: at.Port(), To: netip.MustParseAddrPort("10.0.0.2:80"),
	})
	require.NoError(t, err)
	halfClosed(t, client, server)
	one, other = through(t, again, l)
	halfClosed(t, one, other)
	gone(t, fw)
	gone(t, again)
}

// A thousand idle flows hold no buffers. Each uses less than 40 kB, mostly for the test's own ends
// and stacks.
func TestAThousandIdleFlows(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a thousand file descriptors twice")
	}
	fw, l := published(t)
	const flows = 1000
	before := memory()
	type pair struct {
		client *net.TCPConn
		server *node.Conn
	}
	pairs := make([]pair, 0, flows)
	for range flows {
		client, server := through(t, fw, l)
		pairs = append(pairs, pair{client, server})
	}
	assert.Equal(t, flows, fw.State().Open)
	each := (memory() - before) / flows
	t.Logf("%d bytes a flow", each)
	assert.Less(t, each, 40<<10)
	for _, p := range pairs {
		require.NoError(t, p.client.CloseWrite())
		require.NoError(t, p.server.CloseWrite())
	}
	assert.Zero(t, gone(t, fw).Failed)
}

// memory returns the size of the heap and the stacks.
func memory() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// Concurrent downloads through a lossy router arrive complete.
func TestConcurrentDownloads(t *testing.T) {
	t.Parallel()
	a, b, c := operatortest.Three(t, node.Config{})
	for _, f := range []string{"if0", "if1"} {
		testenv.Ask(t, b, control.SetLoss{Iface: f, Percent: 2})
	}
	service := listenHere(t)
	file := make([]byte, 256<<10)
	fill(file)
	var served sync.WaitGroup
	defer served.Wait()
	defer service.Close()
	served.Go(func() {
		for {
			conn, err := service.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				_, _ = io.Copy(conn, bytes.NewReader(file)) // the client checks what arrives
				_ = conn.Close()
			})
		}
	})
	_, err := c.Forwards.Expose(control.Expose{Port: 80, To: service.Addr().String()})
	require.NoError(t, err)
	fw, err := a.Forwards.Publish(control.Publish{To: netip.MustParseAddrPort("10.1.0.2:80")})
	require.NoError(t, err)
	want := sha256.Sum256(file)
	const downloads = 64
	got := make([][]byte, downloads)
	errs := make([]error, downloads)
	var wg sync.WaitGroup
	for i := range downloads {
		wg.Go(func() {
			conn, err := net.Dial("tcp", fw.Addr().String())
			if err != nil {
				errs[i] = err
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			sum := sha256.New()
			_, errs[i] = io.Copy(sum, conn)
			got[i] = sum.Sum(nil)
		})
	}
	wg.Wait()
	for i := range downloads {
		require.NoError(t, errs[i], i)
		assert.Equal(t, want[:], got[i], i)
	}
	assert.Zero(t, gone(t, fw).Failed)
}

func TestDatagramsThroughForwards(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	service, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(
		netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, err)
	defer service.Close()
	limit(t, &udpConn{service})
	_, err = b.Forwards.Expose(control.Expose{Port: 53, To: service.LocalAddr().String(), UDP: true})
	require.NoError(t, err)
	fw, err := a.Forwards.Publish(control.Publish{
		To: netip.MustParseAddrPort("10.0.0.2:53"), UDP: true,
	})
	require.NoError(t, err)
	buf := make([]byte, 100)
	for i := range 3 {
		client, err := net.Dial("udp", fw.Addr().String())
		require.NoError(t, err)
		defer client.Close()
		limit(t, client)
		_, err = fmt.Fprintf(client, "question %d", i)
		require.NoError(t, err)
		k, from, err := service.ReadFromUDPAddrPort(buf)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("question %d", i), string(buf[:k]))
		_, err = service.WriteToUDPAddrPort([]byte(fmt.Sprintf("answer %d", i)), from)
		require.NoError(t, err)
		k, err = client.Read(buf)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("answer %d", i), string(buf[:k]))
	}
	assert.Equal(t, 3, fw.State().Open)
	require.NoError(t, fw.Close(true))
	gone(t, fw)
}

// udpConn is a UDP socket that limit accepts.
type udpConn struct{ *net.UDPConn }

func (u *udpConn) Write([]byte) (int, error) { return 0, net.ErrClosed }

// A splice forwards every port to this machine, and refuses what this machine refuses.
func TestSpliceForwardsEveryPort(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	fw, err := b.Forwards.Splice(control.Splice{Addr: netip.MustParseAddr("10.0.0.2")})
	require.NoError(t, err)
	_, err = b.Forwards.Splice(control.Splice{Addr: netip.MustParseAddr("10.0.0.2")})
	require.ErrorIs(t, err, control.ErrPortInUse)
	service := listenHere(t)
	port := netip.MustParseAddrPort(service.Addr().String()).Port()
	at := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), port)
	client, err := a.Node.TCP.Dial(t.Context(), at)
	require.NoError(t, err)
	server, err := service.AcceptTCP()
	require.NoError(t, err)
	limit(t, client)
	limit(t, server)
	halfClosed(t, client, server)
	require.NoError(t, server.Close())
	require.NoError(t, client.Close())
	gone(t, fw)

	require.NoError(t, service.Close())
	_, err = a.Node.TCP.Dial(t.Context(), at)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	echo, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(
		netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, err)
	defer echo.Close()
	limit(t, &udpConn{echo})
	u, err := a.Node.Packets.Dial(netip.AddrPortFrom(at.Addr(),
		netip.MustParseAddrPort(echo.LocalAddr().String()).Port()))
	require.NoError(t, err)
	defer u.Close()
	require.NoError(t, u.SetDeadline(time.Now().Add(time.Minute)))
	_, err = u.Write([]byte("ping"))
	require.NoError(t, err)
	buf := make([]byte, 10)
	k, from, err := echo.ReadFromUDPAddrPort(buf)
	require.NoError(t, err)
	_, err = echo.WriteToUDPAddrPort(buf[:k], from)
	require.NoError(t, err)
	k, err = u.Read(buf)
	require.NoError(t, err)
	assert.Equal(t, "ping", string(buf[:k]))

	require.NoError(t, fw.Close(true))
	gone(t, fw)
	_, err = a.Node.TCP.Dial(t.Context(), at)
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "it is as it was")
}

// The error about a port in use names the forward that uses it.
func TestPortInUseNamesTheForward(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	fw, _ := publishedTo(t, a, b)
	at, err := netip.ParseAddrPort(fw.Addr().String())
	require.NoError(t, err)
	_, err = a.Forwards.Publish(control.Publish{
		Port: at.Port(), To: netip.MustParseAddrPort("10.0.0.2:81"),
	})
	require.ErrorIs(t, err, control.ErrPortInUse)
	require.ErrorContains(t, err,
		"in use: port forward 0 to 10.0.0.2:80 uses it; `doors close 0` closes it")

	expose := func(port uint16, udp bool) error {
		_, err := b.Forwards.Expose(control.Expose{Port: port, To: "127.0.0.1:1", UDP: udp})
		return err
	}
	require.NoError(t, expose(90, false))
	err = expose(90, false)
	require.ErrorIs(t, err, control.ErrPortInUse)
	require.ErrorContains(t, err, "port forward 0 to 127.0.0.1:1 uses it")
	// The same port in another network, or a port that another program uses, is not the forward's.
	require.NoError(t, expose(90, true))
	err = expose(80, false)
	require.ErrorIs(t, err, control.ErrPortInUse)
	assert.NotContains(t, err.Error(), "forward")
}
