package tidepool_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

func TestPing(t *testing.T) {
	a, _, _ := line(t, tidepool.Config{})
	seen := 0
	result, err := a.Ping(t.Context(), "10.1.0.2", tidepool.PingOptions{
		Count: 5, Interval: time.Millisecond, Each: func(tidepool.PingReply) { seen++ },
	})
	require.NoError(t, err)
	assert.Equal(t, 5, result.Sent)
	assert.Equal(t, 5, result.Received)
	assert.Zero(t, result.Loss())
	assert.Equal(t, 5, seen)
	require.Len(t, result.Replies, 5)
	for i, r := range result.Replies {
		assert.Equal(t, i+1, r.Seq)
		assert.Equal(t, addr("10.1.0.2"), r.From)
		assert.Equal(t, 63, r.TTL)
		assert.Equal(t, 64, r.Size)
		assert.NoError(t, r.Err)
		assert.LessOrEqual(t, result.Min, r.RTT)
		assert.GreaterOrEqual(t, result.Max, r.RTT)
	}
}

// RFC 792: each ICMP error has its own meaning, and matches a system error.
func TestPingErrors(t *testing.T) {
	var clock tidepool.Clock
	a, router, _ := line(t, tidepool.Config{Clock: &clock})
	ping := func(host string, o tidepool.PingOptions) tidepool.PingReply {
		p, err := a.StartPing(host, o)
		require.NoError(t, err)
		clock.Advance(time.Minute)
		result, err := p.Wait(t.Context())
		require.NoError(t, err)
		require.Len(t, result.Replies, 1)
		return result.Replies[0]
	}
	var report *tidepool.ICMPError
	r := ping("10.1.0.2", tidepool.PingOptions{TTL: 1})
	require.ErrorAs(t, r.Err, &report)
	assert.Equal(t, uint8(11), report.Type)
	assert.Equal(t, addr("10.0.0.2"), report.From)
	require.ErrorIs(t, r.Err, syscall.EHOSTUNREACH)

	r = ping("10.9.0.1", tidepool.PingOptions{})
	require.ErrorAs(t, r.Err, &report)
	require.EqualError(t, r.Err, "Destination Net Unreachable")
	require.ErrorIs(t, r.Err, syscall.ENETUNREACH)
	assert.NotErrorIs(t, r.Err, syscall.EHOSTUNREACH)

	r = ping("10.1.0.2", tidepool.PingOptions{Size: 2000, DontFragment: true})
	require.ErrorIs(t, r.Err, syscall.EMSGSIZE, "an error of this node")
	assert.NotErrorAs(t, r.Err, &report, "no router reported it")

	require.NoError(t, router.SetUp("if1", false))
	r = ping("10.1.0.2", tidepool.PingOptions{})
	require.ErrorAs(t, r.Err, &report)
	assert.Equal(t, uint8(3), report.Type)
}

func TestPingPathMTU(t *testing.T) {
	var clock tidepool.Clock
	ax, bx := tidepool.Pipe(0)
	by, cy := tidepool.Pipe(0)
	cfg := tidepool.Config{Clock: &clock}
	a := open(t, host(cfg, "10.0.0.1/24", "10.0.0.2", ax))
	middle := cfg
	middle.Router = true
	middle.Interfaces = []tidepool.Interface{
		{Addr: prefix("10.0.0.2/24"), Link: bx}, {Addr: prefix("10.1.0.1/24"), Link: by, MTU: 576},
	}
	open(t, middle)
	open(t, host(cfg, "10.1.0.2/24", "10.1.0.1", cy))
	for size, fits := range map[int]bool{548: true, 549: false} {
		p, err := a.StartPing("10.1.0.2", tidepool.PingOptions{Size: size, DontFragment: true})
		require.NoError(t, err)
		clock.Advance(time.Minute)
		result, err := p.Wait(t.Context())
		require.NoError(t, err)
		require.Len(t, result.Replies, 1)
		if fits {
			require.NoError(t, result.Replies[0].Err)
			continue
		}
		var report *tidepool.ICMPError
		require.ErrorAs(t, result.Replies[0].Err, &report)
		assert.Equal(t, 576, report.MTU, "RFC 1191 §4: the router reports the MTU")
		require.ErrorIs(t, report, syscall.EMSGSIZE)
		require.EqualError(t, report, "Frag needed and DF set (mtu = 576)")
	}
	trace, err := a.StartTraceroute("10.1.0.2", tidepool.TracerouteOptions{Size: 600, DontFragment: true})
	require.NoError(t, err)
	clock.Advance(time.Minute)
	hops, err := trace.Wait(t.Context())
	require.NoError(t, err)
	require.Len(t, hops, 2)
	require.ErrorIs(t, hops[1].Probes[0].Err, syscall.EMSGSIZE)

	trace, err = a.StartTraceroute("10.1.0.2", tidepool.TracerouteOptions{PathMTU: true})
	require.NoError(t, err)
	clock.Advance(time.Minute)
	hops, err = trace.Wait(t.Context())
	require.NoError(t, err)
	require.Len(t, hops, 2)
	assert.Equal(t, 1400, hops[0].Probes[0].PathMTU, "of the first link")
	assert.Equal(t, 576, hops[1].Probes[0].PathMTU)
	assert.Zero(t, hops[1].Probes[1].PathMTU, "no news")
	require.NoError(t, hops[1].Probes[0].Err)
}

func TestPingReportsDuplicates(t *testing.T) {
	var clock tidepool.Clock
	x, y := tidepool.Pipe(0)
	cfg := tidepool.Config{Clock: &clock}
	a := open(t, host(cfg, "10.0.0.1/24", "", x))
	far := host(cfg, "10.0.0.2/24", "", y)
	far.Interfaces[0].Impair.Duplicate = 1
	open(t, far)
	p, err := a.StartPing("10.0.0.2", tidepool.PingOptions{Count: 2})
	require.NoError(t, err)
	clock.Advance(time.Minute)
	result, err := p.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, result.Received)
	assert.Positive(t, result.Duplicates)
	assert.False(t, result.Replies[0].Duplicate)
	assert.True(t, result.Replies[1].Duplicate)
}

func TestPingAndTracerouteEnd(t *testing.T) {
	var clock tidepool.Clock
	a, _, _ := line(t, tidepool.Config{Clock: &clock})
	over := errors.New("the test is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	result, err := a.Ping(ctx, "10.1.0.2", tidepool.PingOptions{Count: -1})
	require.ErrorIs(t, err, over)
	assert.Equal(t, 1, result.Received, "the results so far")
	_, err = a.Traceroute(ctx, "10.1.0.77", tidepool.TracerouteOptions{})
	require.ErrorIs(t, err, over)

	p, err := a.StartPing("10.1.0.2", tidepool.PingOptions{Count: -1})
	require.NoError(t, err)
	trace, err := a.StartTraceroute("10.1.0.77", tidepool.TracerouteOptions{})
	require.NoError(t, err)
	require.NoError(t, a.Close())
	_, err = p.Wait(t.Context())
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = trace.Wait(t.Context())
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = a.Ping(t.Context(), "10.1.0.2", tidepool.PingOptions{})
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = new(tidepool.Node).Traceroute(t.Context(), "10.1.0.2", tidepool.TracerouteOptions{})
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = new(tidepool.Pinger).Wait(t.Context())
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = new(tidepool.Tracer).Wait(t.Context())
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestInvalidProbes(t *testing.T) {
	a, _ := pair(t, tidepool.Config{})
	_, err := a.Ping(t.Context(), "10.9.0.1", tidepool.PingOptions{})
	require.ErrorIs(t, err, syscall.ENETUNREACH)
	_, err = a.Ping(t.Context(), "10.0.0.255", tidepool.PingOptions{})
	require.ErrorContains(t, err, "broadcast")
	_, err = a.Ping(t.Context(), "10.0.0.2", tidepool.PingOptions{Source: addr("10.0.0.9")})
	require.ErrorContains(t, err, "not an address of this node")
	for _, o := range []tidepool.PingOptions{
		{Size: 65508}, {TTL: 256}, {TTL: -1}, {Pattern: make([]byte, 17)},
	} {
		_, err = a.Ping(t.Context(), "10.0.0.2", o)
		assert.Error(t, err)
	}
	for _, o := range []tidepool.TracerouteOptions{
		{Protocol: "dccp"}, {Queries: 11}, {First: 31}, {Protocol: "tcp", PathMTU: true}, {MaxHops: 256}, {Port: 65536}, {Parallel: -1},
	} {
		_, err = a.Traceroute(t.Context(), "10.0.0.2", o)
		assert.Error(t, err)
	}
	_, err = a.Traceroute(t.Context(), "nobody", tidepool.TracerouteOptions{})
	var dns *net.DNSError
	require.ErrorAs(t, err, &dns)
	assert.True(t, dns.IsNotFound)
}

func TestRawSockets(t *testing.T) {
	var clock tidepool.Clock
	a, b := pair(t, tidepool.Config{Clock: &clock})
	const ospf = "ip4:89"
	to := func(s string) net.Addr { return &net.IPAddr{IP: net.ParseIP(s)} }
	x, err := a.ListenPacket(ospf, "10.0.0.1")
	require.NoError(t, err)
	y, err := b.ListenPacket("ip:ospf", "")
	require.NoError(t, err)
	require.NoError(t, x.(*tidepool.IPConn).SetTTL(1))
	require.Error(t, x.(*tidepool.IPConn).SetTTL(256))
	_, err = x.WriteTo([]byte("hello"), to("10.0.0.2"))
	require.NoError(t, err)
	buf := make([]byte, 3)
	n, from, err := y.ReadFrom(buf)
	require.NoError(t, err)
	assert.Equal(t, "hel", string(buf[:n]))
	assert.Equal(t, "10.0.0.1", from.String())

	require.NoError(t, y.SetReadDeadline(clock.Now()))
	_, _, err = y.ReadFrom(buf)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, y.SetDeadline(time.Time{}))
	for range 2000 { // 256 KiB hold 1024 small ones
		_, err = x.WriteTo([]byte("flood"), to("10.0.0.2"))
		require.NoError(t, err)
	}
	require.NoError(t, y.SetReadDeadline(clock.Now().Add(time.Second)))
	clock.Advance(time.Second)
	require.NoError(t, y.SetReadDeadline(time.Time{}))
	got := 0
	for ; got < 1024; got++ {
		_, _, err = y.ReadFrom(buf)
		require.NoError(t, err)
	}
	require.NoError(t, y.SetReadDeadline(clock.Now()))
	_, _, err = y.ReadFrom(buf)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "later messages are dropped")

	require.NoError(t, y.Close())
	_, _, err = y.ReadFrom(buf)
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = y.WriteTo(buf, to("10.0.0.1"))
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, y.Close(), net.ErrClosed)
	require.ErrorIs(t, new(tidepool.IPConn).Close(), net.ErrClosed)

	_, err = x.WriteTo(make([]byte, 65516), to("10.0.0.2"))
	require.ErrorIs(t, err, syscall.EMSGSIZE)
	_, err = x.WriteTo(nil, to("10.9.0.2"))
	require.ErrorIs(t, err, syscall.ENETUNREACH)
	_, err = x.WriteTo(nil, to("::1"))
	require.Error(t, err)
	_, err = a.ListenPacket(ospf, "10.0.0.7")
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	_, err = a.ListenPacket("ip4:nothing", "")
	require.ErrorContains(t, err, "unknown IP protocol")
	_, err = a.ListenPacket("ip4:256", "")
	require.Error(t, err)
	_, err = a.ListenPacket("ip6:icmp", "10.0.0.1")
	require.ErrorContains(t, err, "no suitable address found")
}

// Raw sockets receive ICMP errors about probes too (RFC 1122 §3.2.2).
func TestRawSocketsReceiveICMPErrors(t *testing.T) {
	var clock tidepool.Clock
	a, _ := pair(t, tidepool.Config{Clock: &clock})
	c, err := a.ListenPacket("ip4:icmp", "")
	require.NoError(t, err)
	u, err := a.ListenPacket("udp", ":0")
	require.NoError(t, err)
	_, err = u.WriteTo([]byte("anybody?"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.2:9")))
	require.NoError(t, err)
	buf := make([]byte, 1500)
	n, from, err := c.ReadFrom(buf)
	require.NoError(t, err)
	assert.Equal(t, "10.0.0.2", from.String())
	assert.GreaterOrEqual(t, n, 36)
	assert.Equal(t, []byte{3, 3}, buf[:2], "port unreachable")
}

// drivenPair returns a connection between two hosts on one Clock, over a link of 10 ms.
func drivenPair(tb testing.TB, clock *tidepool.Clock) (client, server *tidepool.Conn) {
	tb.Helper()
	x, y := tidepool.Pipe(0)
	slow := host(tidepool.Config{Clock: clock}, "10.0.0.2/24", "", y)
	slow.Interfaces[0].Impair.Delay = 5 * time.Millisecond
	a := open(tb, host(tidepool.Config{Clock: clock}, "10.0.0.1/24", "", x))
	b := open(tb, slow)
	l, err := a.Listen("tcp", ":80")
	require.NoError(tb, err)
	dialed := make(chan *tidepool.Conn, 1)
	go func() {
		c, err := b.Dial("tcp", "10.0.0.1:80")
		assert.NoError(tb, err)
		dialed <- c.(*tidepool.Conn)
	}()
	for client == nil {
		select {
		case client = <-dialed:
		default:
			clock.Advance(time.Millisecond)
		}
	}
	clock.Advance(time.Second)
	accepted, err := l.Accept()
	require.NoError(tb, err)
	return client, accepted.(*tidepool.Conn)
}

// move writes n bytes and advances the clock until they are acknowledged.
func move(tb testing.TB, clock *tidepool.Clock, from, to *tidepool.Conn, n int) {
	tb.Helper()
	chunk := make([]byte, 64<<10)
	for n > 0 {
		k, err := from.Write(chunk[:min(n, len(chunk))])
		require.NoError(tb, err)
		n -= k
		for left := k; left > 0; {
			clock.Advance(5 * time.Millisecond)
			require.NoError(tb, to.SetReadDeadline(clock.Now().Add(-1)))
			require.NoError(tb, to.SetReadDeadline(time.Time{}))
			info, err := to.Info()
			require.NoError(tb, err)
			if info.Unread == 0 {
				continue
			}
			got, err := to.Read(chunk)
			require.NoError(tb, err)
			left -= got
		}
	}
	clock.Advance(time.Second)
}

func TestProbe(t *testing.T) {
	var clock tidepool.Clock
	client, server := drivenPair(t, &clock)
	move(t, &clock, client, server, 100<<10)
	var seen []tidepool.Sample
	require.NoError(t, client.Probe(func(s tidepool.Sample) { seen = append(seen, s) }))
	begin := clock.Now()
	move(t, &clock, client, server, 300<<10)
	require.NoError(t, client.Probe(nil))
	require.Greater(t, len(seen), 10)
	before := tidepool.Sample{Time: begin}
	reasons := map[string]bool{}
	for i, s := range seen {
		require.False(t, s.Time.Before(before.Time), "sample %d", i)
		require.GreaterOrEqual(t, s.Acked, before.Acked, "sample %d", i)
		require.GreaterOrEqual(t, s.DeliveredBytes, before.DeliveredBytes, "sample %d", i)
		assert.Equal(t, "ESTABLISHED", s.State)
		assert.Equal(t, "open", s.CAState)
		assert.Equal(t, s.Sent-s.Acked, uint64(s.Pipe), "nothing is lost")
		assert.Zero(t, s.TotalRetrans+s.TotalRTO+s.Missed)
		assert.GreaterOrEqual(t, s.RTT, 10*time.Millisecond)
		assert.GreaterOrEqual(t, s.RTO, 200*time.Millisecond)
		assert.Positive(t, s.SndCwnd)
		reasons[s.Limited] = true
		before = s
	}
	assert.EqualValues(t, 400<<10, before.Acked)
	assert.EqualValues(t, 400<<10, before.DeliveredBytes)
	assert.Positive(t, before.DeliveryRate)
	assert.Zero(t, before.Pipe)
	assert.True(t, reasons["idle"], "%v", reasons)
	assert.Equal(t, "idle", before.Limited)
	assert.Contains(t, before.String(), " ESTABLISHED open cwnd:")
	assert.Contains(t, before.String(), " acked:409600 notsent:0 retrans:0 ")

	// The same transfer without a probe adds no samples.
	n := len(seen)
	move(t, &clock, client, server, 100<<10)
	assert.Len(t, seen, n)

	// A new probe function runs until the connection ends.
	states := map[string]bool{}
	require.NoError(t, client.Probe(func(s tidepool.Sample) { states[s.State] = true }))
	move(t, &clock, client, server, 100<<10)
	require.NoError(t, client.Close())
	clock.Advance(time.Second)
	require.NoError(t, server.Close())
	clock.Advance(5 * time.Minute)
	require.NoError(t, client.Probe(nil), "ending a probe is not an error")
	for _, state := range []string{"ESTABLISHED", "FIN_WAIT_1", "FIN_WAIT_2", "TIME_WAIT"} {
		assert.True(t, states[state], "%s of %v", state, states)
	}
	assert.Len(t, seen, n)
	err := client.Probe(func(tidepool.Sample) {})
	require.ErrorIs(t, err, net.ErrClosed)
}

// A function that blocks delays nothing: samples queue, and those that exceed the queue are
// counted.
func TestSlowProbe(t *testing.T) {
	var clock tidepool.Clock
	client, server := drivenPair(t, &clock)
	const most = 1 + 4096 // one in the function, the others in the queue
	hold, caughtUp := make(chan struct{}), make(chan struct{})
	missed, calls := uint64(0), 0
	require.NoError(t, client.Probe(func(s tidepool.Sample) {
		<-hold
		if calls++; calls == most {
			close(caughtUp)
		}
		missed = s.Missed
	}))
	for range 1500 {
		move(t, &clock, client, server, 100)
	}
	close(hold)
	<-caughtUp
	move(t, &clock, client, server, 100)
	require.NoError(t, client.Probe(nil))
	assert.Greater(t, calls, most)
	assert.Positive(t, missed)
}

// A probe's function may call any method, and closing the node ends the probe.
func TestProbeCallsConnection(t *testing.T) {
	a, b := pair(t, tidepool.Config{})
	client, server := dial(t, b, a, "10.0.0.1:80")
	var once sync.Once
	told := make(chan struct{})
	require.NoError(t, client.Probe(func(s tidepool.Sample) {
		if _, err := client.Info(); err == nil {
			once.Do(func() { close(told) })
		}
	}))
	go func() {
		_, _ = client.Write(make([]byte, 1<<20))
		_ = client.CloseWrite()
	}()
	n, err := io.Copy(io.Discard, server)
	require.NoError(t, err)
	assert.EqualValues(t, 1<<20, n)
	require.NoError(t, server.Close())
	_, err = io.ReadAll(client)
	require.NoError(t, err)
	<-told
	require.NoError(t, b.Close()) // TestMain checks for leaked goroutines
	require.NoError(t, client.Probe(nil))
	require.ErrorIs(t, client.Probe(func(tidepool.Sample) {}), net.ErrClosed)
}

// Without a probe, a round trip allocates nothing for it.
func TestNoProbeAllocatesNothing(t *testing.T) {
	var clock tidepool.Clock
	client, server := drivenPair(t, &clock)
	chunk := make([]byte, 100)
	round := func() {
		_, err := client.Write(chunk)
		require.NoError(t, err)
		clock.Advance(100 * time.Millisecond)
		_, err = io.ReadFull(server, chunk)
		require.NoError(t, err)
	}
	for range 100 {
		round()
	}
	never := testing.AllocsPerRun(1000, round)
	require.NoError(t, client.Probe(func(tidepool.Sample) {}))
	round()
	require.NoError(t, client.Probe(nil))
	round()
	assert.Zero(t, never)
	assert.Zero(t, testing.AllocsPerRun(1000, round))
}
