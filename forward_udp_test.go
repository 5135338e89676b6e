package tidepool_test

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool"
)

// ask sends a datagram and returns what comes back.
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

func TestAForwarderAnswersDatagramsForEveryAddress(t *testing.T) {
	client, gateway := gated(t)
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
		assert.ErrorIs(t, err, net.ErrClosed, "it was accepted already")
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
	assert.Equal(t, "socket", said, "a socket comes first")
	for _, to := range []string{"9.9.9.9:53", "10.9.0.1:443", "1.1.1.1:22"} {
		u, err := client.Dial("udp", to)
		require.NoError(t, err)
		p := make([]byte, 100)
		for _, text := range []string{"one", "two"} { // the second finds the flow's socket
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

// A flow that was accepted goes on when the forwarder ends; nothing else is taken.
func TestAnAcceptedFlowOutlivesItsForwarder(t *testing.T) {
	client, gateway := gated(t)
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

// Two flows from one socket to two addresses, and what waits while the first is decided.
func TestAFlowsDatagramsWaitForTheDecision(t *testing.T) {
	var clock tidepool.Clock
	a, b := pair(t, tidepool.Config{Clock: &clock})
	requests := make(chan *tidepool.UDPRequest)
	require.NoError(t, a.ForwardUDP(func(r *tidepool.UDPRequest) {
		requests <- r
		<-requests // it is decided elsewhere
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
	assert.Equal(t, "abcdz", got, "four wait, and the flow has its socket then")
	require.NoError(t, c.Close())
	_, err = u.WriteToAddrPort([]byte("again"), to)
	require.NoError(t, err)
	r = <-requests
	r.Drop()
	requests <- nil
	require.NoError(t, u.Close())
}
