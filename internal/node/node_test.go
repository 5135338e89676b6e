package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
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
	"golang.org/x/net/nettest"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func freePorts(tb testing.TB, n int) []int {
	tb.Helper()
	return testenv.FreePorts(tb, n)
}

func start(tb testing.TB, cfg Config, name, text string) *Node {
	tb.Helper()
	return startFile(tb, cfg, testenv.ParseNode(tb, name, text))
}

func startFile(tb testing.TB, cfg Config, file *lnx.Config) *Node {
	tb.Helper()
	n, err := OpenFile(cfg, file)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, n.Close()) })
	return n
}

// twoNodes starts two nodes on one link: 10.0.0.1 and 10.0.0.2.
func twoNodes(tb testing.TB, cfg Config) (a, b *Node) {
	tb.Helper()
	fa, fb := testenv.TwoNodes(tb)
	return startFile(tb, cfg, fa), startFile(tb, cfg, fb)
}

// line3 starts A - B - C: the host 10.0.0.1, a router, and the host 10.1.0.2.
func line3(tb testing.TB, cfg Config) (a, b, c *Node) {
	tb.Helper()
	fa, fb, fc := testenv.ThreeNodes(tb)
	return startFile(tb, cfg, fa), startFile(tb, cfg, fb), startFile(tb, cfg, fc)
}

func connect(tb testing.TB, from, to *Node, addr string) (client, server *Conn) {
	tb.Helper()
	at := netip.MustParseAddrPort(addr)
	l, err := to.TCP.Listen(at, 0)
	require.NoError(tb, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	client, err = from.TCP.Dial(ctx, at)
	require.NoError(tb, err)
	server, err = l.AcceptTCP()
	require.NoError(tb, err)
	return client, server
}

func TestConnIsANetConn(t *testing.T) {
	t.Parallel()
	for _, kind := range []waiterKind{waitBest, waitFed} {
		t.Run(fmt.Sprint("waiter ", kind), func(t *testing.T) {
			offload := ""
			if kind == waitFed {
				offload = "plain"
			}
			a, b := twoNodes(t, Config{waiter: kind, Offload: offload})
			port := 1000
			var mu sync.Mutex
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				mu.Lock()
				port++
				at := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), uint16(port))
				mu.Unlock()
				l, err := b.TCP.Listen(at, 0)
				if err != nil {
					return nil, nil, nil, err
				}
				defer l.Close()
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				client, err := a.TCP.Dial(ctx, at)
				if err != nil {
					return nil, nil, nil, err
				}
				server, err := l.Accept()
				if err != nil {
					return nil, nil, nil, err
				}
				return client, server, func() { _ = client.Close(); _ = server.Close() }, nil
			})
		})
	}
}

func TestTransferInBothDirectionsThroughALossyRouter(t *testing.T) {
	a, b, c := line3(t, Config{Seed: 3})
	testenv.Ask(t, b, control.SetLoss{Percent: 3})
	client, server := connect(t, c, a, "10.0.0.1:80")
	const size = 3 << 20
	var wg sync.WaitGroup
	for i, way := range []struct{ from, to *Conn }{{client, server}, {server, client}} {
		sent, got := sha256.New(), sha256.New()
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			p := make([]byte, 50_000)
			for left := size; left > 0; {
				n := min(left, 1+rng.IntN(len(p)))
				for k := range p[:n] {
					p[k] = byte(rng.Uint32())
				}
				sent.Write(p[:n])
				if _, err := way.from.Write(p[:n]); !assert.NoError(t, err) {
					return
				}
				left -= n
			}
			assert.NoError(t, way.from.CloseWrite())
		})
		wg.Go(func() {
			n, err := io.Copy(got, way.to)
			assert.Equal(t, int64(size), n)
			assert.NoError(t, err)
		})
		defer func() { assert.Equal(t, sent.Sum(nil), got.Sum(nil)) }()
	}
	wg.Wait()
}

// Nodes exchange packets over IPv6 sockets, with every offload, and packets can be as large as a
// datagram.
func TestLinksOverIPv6(t *testing.T) {
	for _, offload := range []string{"", "mmsg", "plain"} {
		for _, mtu := range []int{1400, 65527} {
			t.Run(fmt.Sprint(offload, mtu), func(t *testing.T) {
				if offload == "mmsg" && runtime.GOOS != "linux" {
					t.Skip("Linux only")
				}
				p := freePorts(t, 2)
				file := func(own, other int) string {
					return fmt.Sprintf("interface if0 10.0.0.%d/24 [::1]:%d\nlink if0 mtu %d\n"+
						"neighbor 10.0.0.%d at [::1]:%d via if0\n", own+1, p[own], mtu, other+1, p[other])
				}
				a := start(t, Config{Offload: offload}, "A", file(0, 1))
				b := start(t, Config{Offload: offload}, "B", file(1, 0))
				client, server := connect(t, a, b, "10.0.0.2:80")
				sent := make([]byte, 2<<20)
				_, _ = rand.NewChaCha8([32]byte{1}).Read(sent)
				go func() {
					_, err := client.Write(sent)
					assert.NoError(t, err)
					assert.NoError(t, client.CloseWrite())
				}()
				got, err := io.ReadAll(server)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(sent, got))
				list := ask(t, a, control.Neighbors{})
				require.Len(t, list, 1)
				assert.Equal(t, fmt.Sprintf("[::1]:%d", p[1]), list[0].UDP)
			})
		}
	}
}

func TestStandardErrors(t *testing.T) {
	a, b := twoNodes(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := a.TCP.Dial(ctx, netip.MustParseAddrPort("10.0.0.2:9"))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorIs(t, err, control.ErrRefused)
	var op *net.OpError
	require.ErrorAs(t, err, &op)

	for _, to := range []string{"0.0.0.0", "224.0.0.9", "255.255.255.255"} {
		_, err := control.Ask(ctx, a.Operator(), control.Connect{Addr: netip.MustParseAddr(to), Port: 1})
		require.ErrorIs(t, err, control.ErrUsage, to)
		_, err = control.Ask(ctx, a.Operator(), control.SendTest{Addr: netip.MustParseAddr(to)})
		require.ErrorIs(t, err, control.ErrUsage, to)
	}

	_, err = a.TCP.Dial(ctx, netip.MustParseAddrPort("192.168.1.1:9"))
	require.Error(t, err)
	require.ErrorIs(t, err, control.ErrUnreachable)

	l, err := b.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:80"), 0)
	require.NoError(t, err)
	_, err = b.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:80"), 0)
	require.ErrorIs(t, err, syscall.EADDRINUSE)

	client, err := a.TCP.Dial(ctx, netip.MustParseAddrPort("10.0.0.2:80"))
	require.NoError(t, err)
	server, err := l.AcceptTCP()
	require.NoError(t, err)
	require.NoError(t, client.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, client.SetReadDeadline(time.Time{}))

	server.Abort()
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.NoError(t, client.Close())
	_, err = client.Write([]byte{1})
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, client.Close(), net.ErrClosed)
	require.NoError(t, l.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestDialEndsWithItsContext(t *testing.T) {
	p := freePorts(t, 2)
	a := start(t, Config{}, "A", fmt.Sprintf(`interface if0 10.0.0.1/24 127.0.0.1:%d
neighbor 10.0.0.2 at 127.0.0.1:%d via if0`, p[0], p[1]))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := a.TCP.Dial(ctx, netip.MustParseAddrPort("10.0.0.2:9"))
	require.ErrorIs(t, err, context.DeadlineExceeded, "a silent peer alone does not end Dial")
}

func TestCloseUnblocksAllCalls(t *testing.T) {
	a, b := twoNodes(t, Config{})
	client, _ := connect(t, a, b, "10.0.0.2:80")
	l, err := a.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:1"), 0)
	require.NoError(t, err)
	halfClosed, _ := connect(t, a, b, "10.0.0.2:81")
	require.NoError(t, halfClosed.CloseWrite())
	require.NoError(t, halfClosed.AwaitDelivery(t.Context()))
	var wg sync.WaitGroup
	for _, c := range []*Conn{client, halfClosed} {
		wg.Go(func() {
			_, err := c.Read(make([]byte, 1))
			assert.ErrorIs(t, err, net.ErrClosed)
		})
	}
	wg.Go(func() {
		_, err := l.Accept()
		assert.ErrorIs(t, err, net.ErrClosed)
	})
	require.NoError(t, a.Close())
	wg.Wait()
	_, err = a.Do(t.Context(), control.Routes{})
	require.ErrorIs(t, err, control.ErrClosed)
}

func TestManyConnectionsOpenAndClose(t *testing.T) {
	a, b := twoNodes(t, Config{})
	at := netip.MustParseAddrPort("10.0.0.2:7")
	l, err := b.TCP.Listen(at, 0)
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for worker := range 20 {
		wg.Go(func() {
			for i := range 50 {
				if err := echoed(ctx, a, at, fmt.Appendf(nil, "%d-%d", worker, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, l.Close())
}

// echoed sends msg to an echo server and checks the answer.
func echoed(ctx context.Context, n *Node, at netip.AddrPort, msg []byte) error {
	c, err := n.TCP.Dial(ctx, at)
	if err != nil {
		return err
	}
	_, err = c.Write(msg)
	err = errors.Join(err, c.CloseWrite())
	got, readErr := io.ReadAll(c)
	if readErr == nil && !bytes.Equal(msg, got) {
		readErr = fmt.Errorf("sent %q, got %q", msg, got)
	}
	return errors.Join(err, readErr, c.Close())
}

func TestSnapshotsAndEvents(t *testing.T) {
	a, b := twoNodes(t, Config{})
	events := make(chan control.Event, 100)
	defer b.Watch(func(e control.Event) { events <- e })()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := control.Ask(ctx, b.Operator(), control.Listen{Port: 80})
	require.NoError(t, err)
	assert.Equal(t, 0, s.SID)
	assert.Equal(t, "LISTEN", s.State)
	c, err := control.Ask(ctx, a.Operator(), control.Connect{Addr: netip.MustParseAddr("10.0.0.2"), Port: 80})
	require.NoError(t, err)
	assert.Equal(t, "ESTABLISHED", c.State)
	accepted, ok := (<-events).(control.Accepted)
	require.True(t, ok)
	assert.Equal(t, 1, accepted.Socket.SID)

	w, err := control.Ask(ctx, a.Operator(), control.Write{SID: c.SID, Data: []byte("hello")})
	require.NoError(t, err)
	assert.Equal(t, 5, w.Bytes)
	d, err := control.Ask(ctx, b.Operator(), control.Read{SID: 1, N: 5, Full: true})
	require.NoError(t, err)
	assert.Equal(t, "hello", string(d.Bytes))

	require.NoError(t, control.Order(ctx, a.Operator(), control.Close{SID: c.SID}))
	for {
		if e, ok := (<-events).(control.SocketClosed); ok {
			assert.Equal(t, 1, e.Socket.SID)
			assert.Empty(t, e.Problem)
			break
		}
	}
	list, err := control.Ask(ctx, b.Operator(), control.Sockets{Info: true})
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, "CLOSE_WAIT", list[1].State)
	require.NotNil(t, list[1].Info)
	assert.Equal(t, uint64(5), list[1].Info.BytesReceived)

	for size, icmp := range map[int]int{0: 64, -1: 8, 100: 108} {
		p, err := control.Ask(ctx, a.Operator(), control.Ping{
			Addr: netip.MustParseAddr("10.0.0.2"), Count: 3, Interval: time.Millisecond, Size: size,
			Each: func(r control.Reply) { assert.Equal(t, icmp, r.Size, "of %d bytes of data", size) },
		})
		require.NoError(t, err)
		assert.Equal(t, 3, p.Received)
	}
	_, err = control.Ask(ctx, a.Operator(), control.SendTest{Addr: netip.MustParseAddr("10.0.0.2"), Text: "hi"})
	require.NoError(t, err)
	for {
		if e, ok := (<-events).(control.TestReceived); ok {
			assert.Equal(t, "hi", e.Text)
			break
		}
	}
}

func TestPortInUse(t *testing.T) {
	p := freePorts(t, 2)
	text := fmt.Sprintf(`interface if0 10.0.0.1/24 127.0.0.1:%d
neighbor 10.0.0.2 at 127.0.0.1:%d via if0`, p[0], p[1])
	start(t, Config{}, "A", text)
	cfg, err := lnx.Parse("A.lnx", []byte(text))
	require.NoError(t, err)
	_, err = OpenFile(Config{}, cfg)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	assert.Contains(t, err.Error(), "if0")
}
