package tidepool_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// drivenPair is a connection between two hosts on one Clock, over a link of 10 ms.
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

// move writes n bytes and lets time pass until they are acknowledged.
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

func TestAProbeSeesATransfer(t *testing.T) {
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

	// The same transfer unseen: nothing more comes.
	n := len(seen)
	move(t, &clock, client, server, 100<<10)
	assert.Len(t, seen, n)

	// And seen again, by another function, to the end of the connection.
	states := map[string]bool{}
	require.NoError(t, client.Probe(func(s tidepool.Sample) { states[s.State] = true }))
	move(t, &clock, client, server, 100<<10)
	require.NoError(t, client.Close())
	clock.Advance(time.Second)
	require.NoError(t, server.Close())
	clock.Advance(5 * time.Minute)
	require.NoError(t, client.Probe(nil), "the end of a probe is no error")
	for _, state := range []string{"ESTABLISHED", "FIN_WAIT_1", "FIN_WAIT_2", "TIME_WAIT"} {
		assert.True(t, states[state], "%s of %v", state, states)
	}
	assert.Len(t, seen, n)
	err := client.Probe(func(tidepool.Sample) {})
	require.ErrorIs(t, err, net.ErrClosed)
}

// A function that does not return delays nobody: the samples wait, and what is too
// much for the queue is counted.
func TestASlowProbeHoldsUpNothing(t *testing.T) {
	var clock tidepool.Clock
	client, server := drivenPair(t, &clock)
	const most = 1 + 4096 // one in the function's hands, the others in the queue
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

// A probe's function may call whatever it likes, and closing the node ends it.
func TestAProbeMayCallItsConnection(t *testing.T) {
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
	require.NoError(t, b.Close()) // TestMain looks for goroutines that it leaves
	require.NoError(t, client.Probe(nil))
	require.ErrorIs(t, client.Probe(func(tidepool.Sample) {}), net.ErrClosed)
}

// Nobody listens: a round trip allocates exactly what it did before there was a probe.
func TestNoProbeCostsNothing(t *testing.T) {
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
