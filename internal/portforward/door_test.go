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

// doors lists those of a node.
func doors(t *testing.T, n *operator.Node) []control.Door {
	t.Helper()
	return testenv.Ask(t, n, control.Doors{})
}

// published is a node with a door to a listener of another, and a client of this machine that
// came through it to the server there.
func published(t *testing.T) (d *portforward.Door, l *node.Listener) {
	t.Helper()
	a, b := operatortest.Two(t, node.Config{})
	return publishedTo(t, a, b)
}

func publishedTo(t *testing.T, a, b *operator.Node) (d *portforward.Door, l *node.Listener) {
	t.Helper()
	l, err := b.Node.TCP.Listen(netip.MustParseAddrPort("10.0.0.2:80"), 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	a.Doors.Hurry()
	d, err = a.Doors.Publish(control.Publish{To: netip.MustParseAddrPort("10.0.0.2:80")})
	require.NoError(t, err)
	return d, l
}

// through is one connection through a published door.
func through(t *testing.T, d *portforward.Door, l *node.Listener) (client *net.TCPConn, server *node.Conn) {
	t.Helper()
	c, err := net.Dial("tcp", d.Addr().String())
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

// exposed is a node with a door to a service of this machine, and another node.
func exposed(t *testing.T) (client *operator.Node, d *portforward.Door, service *net.TCPListener) {
	t.Helper()
	a, b := operatortest.Two(t, node.Config{})
	service = listenHere(t)
	b.Doors.Hurry()
	d, err := b.Doors.Expose(control.Expose{Port: 80, To: service.Addr().String()})
	require.NoError(t, err)
	return a, d, service
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

// closing is what either end of a flow can do.
type closing interface {
	net.Conn
	CloseWrite() error
}

// halfClosed has each end close its direction while the other goes on.
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

// gone waits until nothing goes through a door.
func gone(t *testing.T, d *portforward.Door) control.Door {
	t.Helper()
	require.Eventually(t, func() bool { return d.State().Open == 0 }, 20*time.Second,
		5*time.Millisecond)
	return d.State()
}

func TestPublishPassesHalfClosesOn(t *testing.T) {
	d, l := published(t)
	assert.True(t, netip.MustParseAddrPort(d.Addr().String()).Addr().IsLoopback(),
		"nobody else comes in unless it was asked for")
	client, server := through(t, d, l)
	halfClosed(t, client, server)
	client, server = through(t, d, l)
	halfClosed(t, server, client) // and the server first
	s := gone(t, d)
	assert.Equal(t, uint64(2), s.Opened)
	assert.Zero(t, s.Failed, s.Problem)
	assert.Equal(t, uint64(14), s.In)
	assert.Equal(t, uint64(14), s.Out)
}

func TestExposePassesHalfClosesOn(t *testing.T) {
	n, d, service := exposed(t)
	client, server := throughExposed(t, n, service)
	halfClosed(t, client, server)
	client, server = throughExposed(t, n, service)
	halfClosed(t, server, client)
	s := gone(t, d)
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

// TestADoorPassesResetsOn in each of its four directions.
func TestADoorPassesResetsOn(t *testing.T) {
	everyWay(t, func(t *testing.T, d *portforward.Door, by, heard closing) {
		_, err := by.Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadFull(heard, make([]byte, 1))
		require.NoError(t, err)
		reset(t, by)
		_, err = heard.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		s := gone(t, d)
		assert.Equal(t, uint64(1), s.Failed)
		assert.Equal(t, "connection reset by peer", s.Problem)
	})
}

// TestAResetBehindAFINEndsTheFlow though the other end says nothing that would find it out.
func TestAResetBehindAFINEndsTheFlow(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it does not tell")
	}
	everyWay(t, func(t *testing.T, d *portforward.Door, by, heard closing) {
		_, err := by.Write([]byte("question"))
		require.NoError(t, err)
		require.NoError(t, by.CloseWrite())
		text, err := io.ReadAll(heard)
		require.NoError(t, err)
		assert.Equal(t, "question", string(text))
		assert.Equal(t, 1, d.State().Open, "an answer may come yet")
		reset(t, by)
		s := gone(t, d)
		assert.Equal(t, uint64(1), s.Failed)
		assert.Equal(t, "connection reset by peer", s.Problem)
		require.Eventually(t, func() bool {
			_, err := heard.Write([]byte("answer"))
			return err != nil
		}, 20*time.Second, time.Millisecond, "the other end was reset")
	})
}

// TestAServiceThatDiesInTheMiddle of what it says: what it said is heard, and then that it is gone.
func TestAServiceThatDiesInTheMiddle(t *testing.T) {
	everyWay(t, func(t *testing.T, d *portforward.Door, by, heard closing) {
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
		assert.Equal(t, uint64(1), gone(t, d).Failed)
	})
}

// everyWay runs a test with each end of each kind of door in the first part.
func everyWay(t *testing.T, check func(t *testing.T, d *portforward.Door, by, heard closing)) {
	t.Run("publish, client", func(t *testing.T) {
		d, l := published(t)
		client, server := through(t, d, l)
		check(t, d, client, server)
	})
	t.Run("publish, server", func(t *testing.T) {
		d, l := published(t)
		client, server := through(t, d, l)
		check(t, d, server, client)
	})
	t.Run("expose, client", func(t *testing.T) {
		n, d, service := exposed(t)
		client, server := throughExposed(t, n, service)
		check(t, d, client, server)
	})
	t.Run("expose, server", func(t *testing.T) {
		n, d, service := exposed(t)
		client, server := throughExposed(t, n, service)
		check(t, d, server, client)
	})
}

// TestWhatWasSaidBeforeAResetIsHeard: a server that answers and resets, for it has not read all.
func TestWhatWasSaidBeforeAResetIsHeard(t *testing.T) {
	d, l := published(t)
	client, server := through(t, d, l)
	_, err := client.Write([]byte("a long upload"))
	require.NoError(t, err)
	// What comes behind a FIN finds an end that is over already: the upload is there first.
	_, err = io.ReadFull(server, make([]byte, 1))
	require.NoError(t, err)
	_, err = server.Write([]byte("413"))
	require.NoError(t, err)
	got := make([]byte, 3)
	_, err = io.ReadFull(client, got)
	require.NoError(t, err)
	assert.Equal(t, "413", string(got))
	require.NoError(t, server.Close()) // RFC 2525 §2.17: with data unread, a reset
	_, err = client.Read(got)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	gone(t, d)
}

// TestASlowReaderHoldsItsWriterUp and no memory beyond the buffers of the two connections.
func TestASlowReaderHoldsItsWriterUp(t *testing.T) {
	d, l := published(t)
	client, server := through(t, d, l)
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
		require.Less(t, written, 64<<20, "nobody reads, and it is taken")
	}
	limit(t, server)
	require.NoError(t, server.CloseWrite())
	got := sha256.New()
	k, err := io.Copy(got, client)
	require.NoError(t, err)
	assert.Equal(t, int64(written), k)
	assert.Equal(t, sum.Sum(nil), got.Sum(nil))
}

// TestAResetReachesWhoReadsNothing: a service that accepts and hangs does not hold the flow of a
// client that has given up.
func TestAResetReachesWhoReadsNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it does not tell")
	}
	everyWay(t, func(t *testing.T, d *portforward.Door, by, heard closing) {
		stuff(t, by)
		reset(t, by)
		s := gone(t, d)
		assert.Equal(t, uint64(1), s.Failed)
		assert.Equal(t, "connection reset by peer", s.Problem)
		_, err := io.Copy(io.Discard, heard)
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

// TestAReaderThatPausesGetsAll though it takes nothing for longer than a door looks away.
func TestAReaderThatPausesGetsAll(t *testing.T) {
	everyWay(t, func(t *testing.T, _ *portforward.Door, by, heard closing) {
		said := stuff(t, by)
		require.NoError(t, by.CloseWrite())
		k, err := io.Copy(io.Discard, heard)
		require.NoError(t, err)
		assert.Equal(t, said, k)
	})
}

// stuff writes until nobody has taken anything for a while, and returns how much was taken.
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
		require.Less(t, bytes, int64(64<<20), "nobody reads, and it is taken")
	}
}

func fill(p []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range p {
		p[i] = byte(r.Uint32())
	}
}

func TestNobodyBehindADoor(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	said := make(chan string, 10)
	defer a.Node.Watchers.Watch(func(e control.Event) {
		if m, ok := e.(control.Message); ok {
			said <- m.Text
		}
	})()
	d, err := a.Doors.Publish(control.Publish{To: netip.MustParseAddrPort("10.0.0.2:81")})
	require.NoError(t, err)
	c, err := net.Dial("tcp", d.Addr().String())
	if err == nil {
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
	assert.Regexp(t, fmt.Sprintf("^publish %v -> 10.0.0.2:81: 127.0.0.1:[0-9]+: "+
		"connection refused$", d.Addr()), <-said)

	service := listenHere(t)
	require.NoError(t, service.Close())
	e, err := b.Doors.Expose(control.Expose{Port: 80, To: service.Addr().String()})
	require.NoError(t, err)
	_, err = a.Node.TCP.Dial(t.Context(), netip.MustParseAddrPort("10.0.0.2:80"))
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "not taken, and then reset")
	assert.Equal(t, "connection refused", gone(t, e).Problem)
	require.NoError(t, e.Close(false))
	_, err = b.Node.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:80"), 0)
	require.NoError(t, err, "the port is free again")
}

// TestAClientThatLeavesEndsItsDial whether by a reset or by a FIN, which may be a half-close, with
// what it said unread.
func TestAClientThatLeavesEndsItsDial(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: elsewhere what was said hides the FIN behind it")
	}
	a, _ := testenv.TwoNodes(t) // the other is not there
	n := operatortest.Start(t, node.Config{}, a)
	n.Doors.Hurry()
	d, err := n.Doors.Publish(control.Publish{To: netip.MustParseAddrPort("10.0.0.2:80")})
	require.NoError(t, err)
	var clients []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", d.Addr().String())
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
			return len(socks) == want && d.State().Open == want
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
	assert.Equal(t, "the client left before there was an answer", d.State().Problem)
}

// TestAnUnreachableHostBehindADoor: the door tries for as long as TCP does, for a router that
// restarts reports so too (RFC 1122 §4.2.3.9). Then its client is reset, and the door says why.
func TestAnUnreachableHostBehindADoor(t *testing.T) {
	fa, fb, _ := testenv.ThreeNodes(t)
	fa.TCP.RTOMax = 20 * time.Millisecond
	a := operatortest.Start(t, node.Config{}, fa)
	operatortest.Start(t, node.Config{}, fb)
	d, err := a.Doors.Publish(control.Publish{To: netip.MustParseAddrPort("10.9.0.1:80")})
	require.NoError(t, err)
	c, err := net.Dial("tcp", d.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	assert.Equal(t, "connection timed out: network unreachable", gone(t, d).Problem)
}

func TestDoorsThatCannotBe(t *testing.T) {
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
	assert.Len(t, doors(t, a), 1)
}

// TestANodeEndsWithItsDoors: whoever is inside is reset, and nothing is left.
func TestANodeEndsWithItsDoors(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	d, l := publishedTo(t, a, b)
	client, server := through(t, d, l)
	require.NoError(t, a.Close())
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	_, err = server.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	_, err = net.Dial("tcp", d.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = a.Doors.Publish(control.Publish{To: netip.MustParseAddrPort("10.0.0.2:80")})
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestClosingADoor(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	d, l := publishedTo(t, a, b)
	client, server := through(t, d, l)
	id := d.State().ID
	testenv.Ask(t, a, control.CloseDoor{ID: id})
	_, err := net.Dial("tcp", d.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = client.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(server, make([]byte, 1))
	require.NoError(t, err, "who is inside goes on")
	list := doors(t, a)
	require.Len(t, list, 1)
	assert.True(t, list[0].Closing)
	err = control.Order(t.Context(), a, control.CloseDoor{ID: id})
	require.ErrorIs(t, err, control.ErrClosed)
	require.ErrorContains(t, err, "flows that go on: 1; --cut resets them")
	require.NoError(t, control.Order(t.Context(), a,
		control.CloseDoor{ID: id, Cut: true}))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	gone(t, d)
	require.Eventually(t, func() bool { return len(doors(t, a)) == 0 }, 10*time.Second,
		time.Millisecond)
}

// TestAPortIsFreeAgain when its door is closed, though connections through it go on or have just
// ended.
func TestAPortIsFreeAgain(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	d, l := publishedTo(t, a, b)
	at := netip.MustParseAddrPort(d.Addr().String())
	one, other := through(t, d, l)
	halfClosed(t, one, other)
	client, server := through(t, d, l)
	require.NoError(t, d.Close(false))
	again, err := a.Doors.Publish(control.Publish{
		Port: at.Port(), To: netip.MustParseAddrPort("10.0.0.2:80"),
	})
	require.NoError(t, err)
	halfClosed(t, client, server)
	one, other = through(t, again, l)
	halfClosed(t, one, other)
	gone(t, d)
	gone(t, again)
}

// TestAThousandIdleFlows hold no buffers of the door's: less than 40 kB each, of which the test's
// own ends and the goroutines' stacks are most.
func TestAThousandIdleFlows(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a thousand file descriptors twice")
	}
	d, l := published(t)
	const flows = 1000
	before := memory()
	type pair struct {
		client *net.TCPConn
		server *node.Conn
	}
	pairs := make([]pair, 0, flows)
	for range flows {
		client, server := through(t, d, l)
		pairs = append(pairs, pair{client, server})
	}
	assert.Equal(t, flows, d.State().Open)
	each := (memory() - before) / flows
	t.Logf("%d bytes a flow", each)
	assert.Less(t, each, 40<<10)
	for _, p := range pairs {
		require.NoError(t, p.client.CloseWrite())
		require.NoError(t, p.server.CloseWrite())
	}
	assert.Zero(t, gone(t, d).Failed)
}

// memory is what the heap and the stacks hold.
func memory() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// TestDownloadsBesideEachOther through a lossy router, each compared with what was sent.
func TestDownloadsBesideEachOther(t *testing.T) {
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
				_, _ = io.Copy(conn, bytes.NewReader(file)) // the client looks
				_ = conn.Close()
			})
		}
	})
	_, err := c.Doors.Expose(control.Expose{Port: 80, To: service.Addr().String()})
	require.NoError(t, err)
	d, err := a.Doors.Publish(control.Publish{To: netip.MustParseAddrPort("10.1.0.2:80")})
	require.NoError(t, err)
	want := sha256.Sum256(file)
	const downloads = 64
	got := make([][]byte, downloads)
	errs := make([]error, downloads)
	var wg sync.WaitGroup
	for i := range downloads {
		wg.Go(func() {
			conn, err := net.Dial("tcp", d.Addr().String())
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
	assert.Zero(t, gone(t, d).Failed)
}

func TestDatagramsThroughDoors(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	service, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(
		netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, err)
	defer service.Close()
	limit(t, &udpConn{service})
	_, err = b.Doors.Expose(control.Expose{Port: 53, To: service.LocalAddr().String(), UDP: true})
	require.NoError(t, err)
	d, err := a.Doors.Publish(control.Publish{
		To: netip.MustParseAddrPort("10.0.0.2:53"), UDP: true,
	})
	require.NoError(t, err)
	buf := make([]byte, 100)
	for i := range 3 {
		client, err := net.Dial("udp", d.Addr().String())
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
	assert.Equal(t, 3, d.State().Open)
	require.NoError(t, d.Close(true))
	gone(t, d)
}

// udpConn is a UDP socket that limit takes.
type udpConn struct{ *net.UDPConn }

func (u *udpConn) Write([]byte) (int, error) { return 0, net.ErrClosed }

// TestSpliceLeadsEveryPortHere, and refuses what this machine refuses.
func TestSpliceLeadsEveryPortHere(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	d, err := b.Doors.Splice(control.Splice{Addr: netip.MustParseAddr("10.0.0.2")})
	require.NoError(t, err)
	_, err = b.Doors.Splice(control.Splice{Addr: netip.MustParseAddr("10.0.0.2")})
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
	gone(t, d)

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

	require.NoError(t, d.Close(true))
	gone(t, d)
	_, err = a.Node.TCP.Dial(t.Context(), at)
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "it is as it was")
}

// TestWhoseDoor: a port that a door of ours has is told with the door.
func TestWhoseDoor(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	d, _ := publishedTo(t, a, b)
	at, err := netip.ParseAddrPort(d.Addr().String())
	require.NoError(t, err)
	_, err = a.Doors.Publish(control.Publish{
		Port: at.Port(), To: netip.MustParseAddrPort("10.0.0.2:81"),
	})
	require.ErrorIs(t, err, control.ErrPortInUse)
	require.ErrorContains(t, err,
		"in use: door 0 leads from there to 10.0.0.2:80; `doors close 0` closes it")

	expose := func(port uint16, udp bool) error {
		_, err := b.Doors.Expose(control.Expose{Port: port, To: "127.0.0.1:1", UDP: udp})
		return err
	}
	require.NoError(t, expose(90, false))
	err = expose(90, false)
	require.ErrorIs(t, err, control.ErrPortInUse)
	require.ErrorContains(t, err, "door 0 leads from there to 127.0.0.1:1")
	// Other networks and other holders are not its.
	require.NoError(t, expose(90, true))
	err = expose(80, false)
	require.ErrorIs(t, err, control.ErrPortInUse)
	assert.NotContains(t, err.Error(), "door")
}
