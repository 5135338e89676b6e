package portforward

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// came is a datagram that has arrived.
type came struct {
	text string
	from uint16 // port of the sender
}

// slowly returns a forward that opens sockets only when the test allows it.
func slowly(t *testing.T) (come chan<- came, dials <-chan chan<- error, service *net.UDPConn, g *datagrams) {
	t.Helper()
	service, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = service.Close() })
	require.NoError(t, service.SetDeadline(time.Now().Add(time.Minute)))
	comes, asks := make(chan came), make(chan chan<- error, 10)
	fw := (&Set{list: map[int]*Forward{}}).newForward(control.DoorExpose, "udp", "53", "somewhere")
	// suppresses the announcement
	fw.announced, fw.state.Problem = time.Now().Add(time.Hour), control.ErrRefused.Error()
	g = &datagrams{
		forward: fw, flows: map[netip.AddrPort]*datagramFlow{},
		dial: func() (net.Conn, error) {
			say := make(chan error)
			asks <- say
			if err := <-say; err != nil {
				return nil, err
			}
			return net.Dial("udp", service.LocalAddr().String())
		},
		reply: func([]byte, netip.AddrPort) error { return nil },
	}
	fw.shut = func() { close(comes) }
	fw.set.flows.Go(func() {
		g.run(func(p []byte) (receivedDatagram, error) {
			c, ok := <-comes
			if !ok {
				return receivedDatagram{}, net.ErrClosed
			}
			return receivedDatagram{
				from: netip.AddrPortFrom(loopback, c.from), length: copy(p, c.text),
			}, nil
		})
	})
	t.Cleanup(func() {
		require.NoError(t, fw.Close(true))
		fw.set.Wait()
		assert.Empty(t, g.flows)
		assert.Zero(t, g.waiting)
	})
	return comes, asks, service, g
}

func heard(t *testing.T, service *net.UDPConn) string {
	t.Helper()
	buf := make([]byte, maxDatagram)
	k, _, err := service.ReadFromUDPAddrPort(buf)
	require.NoError(t, err)
	return string(buf[:k])
}

// A socket that takes long to open delays only its own flow, whose datagrams wait in order.
func TestSlowSocketDelaysOnlyItsFlow(t *testing.T) {
	come, dials, service, g := slowly(t)
	come <- came{"slow 0", 1}
	slow := <-dials
	come <- came{"quick", 2}
	quick := <-dials
	for i := 1; i < 5; i++ {
		come <- came{fmt.Sprint("slow ", i), 1}
	}
	quick <- nil
	assert.Equal(t, "quick", heard(t, service))
	assert.Equal(t, 2, g.forward.State().Open)
	slow <- nil
	for i := range 5 {
		assert.Equal(t, fmt.Sprint("slow ", i), heard(t, service))
	}
	come <- came{"slow 5", 1}
	assert.Equal(t, "slow 5", heard(t, service))
}

// A socket that cannot be opened is tried again with the next datagram.
func TestFailedSocketIsRetried(t *testing.T) {
	come, dials, service, g := slowly(t)
	come <- came{"lost", 1}
	<-dials <- control.ErrRefused
	require.Eventually(t, func() bool {
		s := g.forward.State()
		return s.Open == 0 && s.Failed == 1
	}, 20*time.Second, time.Millisecond)
	come <- came{"again", 1}
	<-dials <- nil
	assert.Equal(t, "again", heard(t, service))
}

// After a socket could not be opened, its datagram is dropped.
func TestDatagramIsDroppedAfterASocketFails(t *testing.T) {
	_, dials, _, g := slowly(t)
	f, err := g.of(receivedDatagram{from: netip.AddrPortFrom(loopback, 1)})
	require.NoError(t, err)
	<-dials <- control.ErrRefused
	require.Eventually(t, func() bool { return g.forward.State().Open == 0 }, 20*time.Second, time.Millisecond)
	g.deliver(f, []byte("late"))
	g.mu.Lock()
	defer g.mu.Unlock()
	assert.Zero(t, g.waiting)
}

// Of the datagrams that wait for a socket, the first maxWaiting bytes are kept.
func TestWaitingDatagramsAreBounded(t *testing.T) {
	come, dials, service, g := slowly(t)
	big := string(make([]byte, 32<<10))
	for i := range 2 * maxWaiting / len(big) {
		come <- came{fmt.Sprint(i, big), 1}
	}
	come <- came{"nothing", 2} // the previous datagram has been taken
	slow, other := <-dials, <-dials
	g.mu.Lock()
	assert.LessOrEqual(t, g.waiting, maxWaiting)
	kept := len(g.flows[netip.AddrPortFrom(loopback, 1)].waiting)
	g.mu.Unlock()
	assert.Equal(t, maxWaiting/(len(big)+2), kept)
	other <- nil
	slow <- nil
	assert.Contains(t, []string{"0" + big, "nothing"}, heard(t, service))
}

// A flood of datagrams with forged sources uses all flows. For each new flow, the forward ends the
// oldest flow whose client has not reacted to an answer. The others stay.
func TestAFloodOfDatagramsLeavesConfirmedFlows(t *testing.T) {
	come, dials, service, g := slowly(t)
	g.forward.room = make(chan struct{}, 3)
	answered := make(chan struct{})
	g.reply = func([]byte, netip.AddrPort) error { answered <- struct{}{}; return nil }
	say := func(text string, from uint16, dial bool) netip.AddrPort {
		come <- came{text, from}
		if dial {
			<-dials <- nil
		}
		buf := make([]byte, maxDatagram)
		k, by, err := service.ReadFromUDPAddrPort(buf)
		require.NoError(t, err)
		require.Equal(t, text, string(buf[:k]))
		return by
	}
	first := say("hello", 1, true)
	_, err := service.WriteToUDPAddrPort([]byte("who is there?"), first)
	require.NoError(t, err)
	<-answered
	assert.Equal(t, first, say("me", 1, false))
	for i := range uint16(50) {
		say("forged", 100+i, true)
	}
	say("a second client", 2, true)
	assert.Equal(t, first, say("still me", 1, false), "by the same socket")
	assert.LessOrEqual(t, g.forward.State().Open, 3)
}
