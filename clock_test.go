package tidepool_test

import (
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// What takes no time has happened when the call returns, in one goroutine.
func TestADrivenNetworkNeedsNoGoroutine(t *testing.T) {
	var clock tidepool.Clock
	a, _, c := line(t, tidepool.Config{Clock: &clock})
	client, server := dial(t, c, a, "10.0.0.1:80")
	_, err := client.Write([]byte("tide"))
	require.NoError(t, err)
	got := make([]byte, 8)
	n, err := server.Read(got)
	require.NoError(t, err)
	assert.Equal(t, "tide", string(got[:n]))
	require.NoError(t, client.Close())
	_, err = server.Read(got)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), clock.Now())
}

// RFC 6298 §5.5 and §5.7: the SYN is sent again after 1 s, then 2 s, 4 s.
func TestADrivenNodeSendsAgainWhenItsClockSaysSo(t *testing.T) {
	var clock tidepool.Clock
	x, wire := tidepool.Pipe(0)
	n := open(t, host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x))
	done := make(chan error, 1)
	go func() {
		_, err := n.DialTCP(t.Context(), netip.MustParseAddrPort("10.0.0.9:80"))
		done <- err
	}()
	packet := make([]byte, 1500)
	_, err := wire.Read(packet) // waits for the goroutine
	require.NoError(t, err)
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		next, ok := clock.Next()
		require.True(t, ok)
		assert.Equal(t, wait, next)
		clock.Advance(wait - 1)
		_, ok = wire.TryRead(packet)
		assert.False(t, ok, "a nanosecond early")
		clock.Advance(1)
		size, ok := wire.TryRead(packet)
		require.True(t, ok)
		assert.EqualValues(t, 2, packet[:size][33], "a SYN")
	}
	clock.Advance(5 * time.Minute)
	require.ErrorIs(t, <-done, syscall.ETIMEDOUT)
	assert.Equal(t, drivenStart.Add(5*time.Minute+7*time.Second), clock.Now())
}

var drivenStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestDeadlinesAreTheClocks(t *testing.T) {
	var clock tidepool.Clock
	a, b := pair(t, tidepool.Config{Clock: &clock})
	client, _ := dial(t, b, a, "10.0.0.1:80")
	require.NoError(t, client.SetReadDeadline(clock.Now().Add(time.Hour)))
	done := make(chan error, 1)
	go func() {
		_, err := client.Read(make([]byte, 1))
		done <- err
	}()
	clock.Advance(time.Hour - 1)
	select {
	case err := <-done:
		t.Fatal("early:", err)
	default:
	}
	clock.Advance(1)
	err := <-done
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())
	require.NoError(t, client.SetReadDeadline(clock.Now()))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

// RFC 792: what a program writes to the link is answered on it.
func TestAProgramIsTheOtherEnd(t *testing.T) {
	var clock tidepool.Clock
	x, wire := tidepool.Pipe(0)
	open(t, host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x))
	echo := []byte{
		0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0x66, 0xdd, 10, 0, 0, 2, 10, 0, 0, 1,
		8, 0, 0xf7, 0xfd, 0, 1, 0, 1,
	}
	fixHeader(echo)
	_, err := wire.Write(echo)
	require.NoError(t, err)
	reply := make([]byte, 1500)
	n, ok := wire.TryRead(reply)
	require.True(t, ok)
	require.Equal(t, 28, n)
	assert.Equal(t, []byte{10, 0, 0, 1, 10, 0, 0, 2, 0, 0}, reply[12:22], "an echo reply")
}

// fixHeader makes the checksum of an IP header of 20 bytes right.
func fixHeader(p []byte) {
	p[10], p[11] = 0, 0
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(p[i])<<8 | uint32(p[i+1])
	}
	sum = sum>>16 + sum&0xffff
	sum += sum >> 16
	p[10], p[11] = byte(^sum>>8), byte(^sum)
}

// A Close takes no time: what the peer does not acknowledge at once is lost.
func TestClosingADrivenNodeTakesNoTime(t *testing.T) {
	var clock tidepool.Clock
	x, wire := tidepool.Pipe(0)
	n, err := tidepool.Open(host(tidepool.Config{Clock: &clock}, "10.0.0.1/24", "", x))
	require.NoError(t, err)
	l, err := n.Listen("tcp", ":80")
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	require.NoError(t, n.Close())
	require.NoError(t, n.Close())
	require.ErrorIs(t, <-accepted, net.ErrClosed)
	_, err = n.Dial("tcp", "10.0.0.9:1")
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = wire.Read(make([]byte, 1500))
	require.ErrorIs(t, err, io.EOF)
}

// Nothing of a closed node is left to come due: no time-out, no deadline.
func TestACloseLeavesNoTimers(t *testing.T) {
	var clock tidepool.Clock
	a, b := pair(t, tidepool.Config{Clock: &clock})
	client, server := dial(t, b, a, "10.0.0.1:80")
	l, err := a.ListenTCP(netip.MustParseAddrPort("10.0.0.1:81"))
	require.NoError(t, err)
	u, err := a.ListenUDP(netip.MustParseAddrPort("10.0.0.1:82"))
	require.NoError(t, err)
	require.NoError(t, client.Probe(func(tidepool.Sample) {}))
	require.NoError(t, a.Forward(func(*tidepool.Request) {}))
	accepted := make(chan error, 1)
	require.NoError(t, a.ForwardUDP(func(r *tidepool.UDPRequest) {
		_, err := r.Accept()
		accepted <- err
	}))
	flow, err := b.DialUDP(netip.MustParseAddrPort("10.0.0.1:99"))
	require.NoError(t, err)
	_, err = flow.Write([]byte("open"))
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	soon := clock.Now().Add(time.Hour)
	for _, set := range []func(time.Time) error{
		client.SetDeadline, server.SetDeadline, l.SetDeadline, u.SetDeadline,
	} {
		require.NoError(t, set(soon))
	}
	_, ok := clock.Next()
	require.True(t, ok)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	_, ok = clock.Next()
	assert.False(t, ok)
	_, err = client.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = server.Write(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
}

// Without a Clock, nodes on pipes live in the time of a synctest bubble.
func TestNodesLiveInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		x, wire := tidepool.Pipe(0)
		n, err := tidepool.Open(host(tidepool.Config{}, "10.0.0.1/24", "", x))
		require.NoError(t, err)
		_, err = n.Dial("tcp", "10.0.0.9:80")
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		assert.Equal(t, 127*time.Second, time.Since(begin), "seven SYNs, the time-out doubled each time")
		require.NoError(t, n.Close())
		syns := 0
		for buf := make([]byte, 1500); ; syns++ {
			if _, ok := wire.TryRead(buf); !ok {
				break
			}
		}
		assert.Equal(t, 7, syns)
	})
}
