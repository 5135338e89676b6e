package stack_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// patient is an RCP configuration whose timeout is longer than any test.
var patient = rcp.Config{Timeout: time.Minute}

func openRCP(t *testing.T, s *stack.Stack, local, remote string, cfg rcp.Config) *stack.RCP {
	t.Helper()
	var to netip.AddrPort
	if remote != "" {
		to = netip.MustParseAddrPort(remote)
	}
	p, err := s.Ports().OpenRCP(netip.MustParseAddrPort(local), to, cfg)
	require.NoError(t, err)
	return p
}

// transfer writes text to one socket and reads the other until all of the text has arrived.
func transfer(t *testing.T, w *world, from, to *rcp.Socket, text []byte) {
	t.Helper()
	var got []byte
	sent, buf := 0, make([]byte, 4096)
	for range 2000 {
		sent += from.Tx().Write(text[sent:])
		w.run(10 * time.Millisecond)
		for n := to.Rx().Read(buf); n > 0; n = to.Rx().Read(buf) {
			got = append(got, buf[:n]...)
		}
		if len(got) == len(text) {
			break
		}
	}
	assert.True(t, bytes.Equal(text, got), "%d of %d bytes", len(got), len(text))
}

// One router on a port serves two clients over links with 20 % loss.
func TestRCPOverUDPPorts(t *testing.T) {
	w, a, _, c := line(t)
	w.loss = .2
	server := openRCP(t, c, "0.0.0.0:9000", "", patient)
	require.NoError(t, server.Router.Listen(8))
	text := bytes.Repeat([]byte("sliding fence "), 3000)
	for range 2 {
		client := openRCP(t, a, "0.0.0.0:0", "10.1.0.2:9000", patient)
		s, err := client.Router.Connect(w.now, netip.MustParseAddrPort("10.1.0.2:9000"))
		require.NoError(t, err)
		w.run(time.Second)
		peer, ok := server.Router.Accept()
		require.True(t, ok)
		assert.Equal(t, netip.AddrPortFrom(addr("10.0.0.1"), client.UDP.Local().Port()), peer.Peer())
		transfer(t, w, s, peer, text)
		transfer(t, w, peer, s, text)
	}
	assert.Len(t, c.Ports().List(), 1)
	assert.Len(t, a.Ports().List(), 2)
}

// An RCP router owns its port exclusively while it is open.
func TestRCPOwnsItsPort(t *testing.T) {
	w, a, _, c := line(t)
	at := netip.MustParseAddrPort("10.1.0.2:9000")
	p := openRCP(t, c, at.String(), "", rcp.Config{})
	_, err := c.Datagrams().Bind(at)
	require.ErrorIs(t, err, udp.ErrPortInUse)
	_, err = c.Ports().OpenRCP(at, netip.AddrPort{}, rcp.Config{})
	require.ErrorIs(t, err, udp.ErrPortInUse)
	c.Ports().CloseRCP(p)
	assert.Empty(t, c.Ports().List())
	bindUDP(t, c, at.String()).Close()

	// The port is free now, so ICMP reports the port unreachable to the client.
	client := openRCP(t, a, "0.0.0.0:0", at.String(), rcp.Config{})
	_, err = client.Router.Connect(w.now, at)
	require.NoError(t, err)
	w.run(15 * time.Millisecond)
	assert.ErrorIs(t, client.UDP.TakeError(), udp.ErrRefused)
}

func TestRCPRefuses(t *testing.T) {
	_, a, _, _ := line(t)
	for _, c := range []struct {
		local, remote string
		cfg           rcp.Config
		want          error
	}{
		{"10.9.9.9:9000", "", rcp.Config{}, stack.ErrNotOurs},
		{"10.0.0.255:9000", "", rcp.Config{}, stack.ErrNotOurs},
		{"0.0.0.0:9000", "", rcp.Config{Width: -1}, rcp.ErrConfig},
		{"10.9.9.9:0", "10.1.0.2:9000", rcp.Config{}, stack.ErrNotOurs},
	} {
		var to netip.AddrPort
		if c.remote != "" {
			to = netip.MustParseAddrPort(c.remote)
		}
		_, err := a.Ports().OpenRCP(netip.MustParseAddrPort(c.local), to, c.cfg)
		require.ErrorIs(t, err, c.want, c.local)
	}
	assert.Empty(t, a.Ports().List())

	all := netip.MustParseAddrPort("0.0.0.0:0")
	for range 256 {
		_, err := a.Ports().OpenRCP(all, netip.AddrPort{}, rcp.Config{})
		require.NoError(t, err)
	}
	_, err := a.Ports().OpenRCP(all, netip.AddrPort{}, rcp.Config{})
	require.ErrorIs(t, err, stack.ErrTooMany)
}

// A router does not queue more packets for a link that accepts none. It sends them when the link
// has room.
func TestRCPWaitsForTheLink(t *testing.T) {
	w, a, _, c := line(t)
	server := openRCP(t, c, "0.0.0.0:9000", "", patient)
	require.NoError(t, server.Router.Listen(1))
	cfg := patient
	cfg.PacketSize, cfg.Width = 1300, 128
	at := netip.MustParseAddrPort("10.1.0.2:9000")
	client := openRCP(t, a, "0.0.0.0:0", at.String(), cfg)
	s, err := client.Router.Connect(w.now, at)
	require.NoError(t, err)
	w.run(30 * time.Millisecond)
	peer, ok := server.Router.Accept()
	require.True(t, ok)
	s.Tx().Write(make([]byte, 64<<10))
	peer.Tx().Write([]byte("x"))

	room := w.room
	w.room = 0
	w.run(time.Second)
	assert.Less(t, client.Router.Counts().DAT, uint64(60), "64 KiB are 51 packets of 1,300 bytes")
	w.room = room
	w.run(time.Second)
	assert.Equal(t, 64<<10, peer.Rx().Len())
}
