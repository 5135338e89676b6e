package portforward_test

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
	"github.com/tidepool-net/tidepool/internal/portforward"
)

// leadingUDP lists ways to forward datagrams from 10.0.0.2 to a port of this machine.
var leadingUDP = map[string]func(*operator.Node, netip.AddrPort) (*portforward.Forward, error){
	"expose": func(n *operator.Node, to netip.AddrPort) (*portforward.Forward, error) {
		return n.Forwards.Expose(control.Expose{Port: to.Port(), To: to.String(), UDP: true})
	},
	"splice": func(n *operator.Node, _ netip.AddrPort) (*portforward.Forward, error) {
		return n.Forwards.Splice(control.Splice{Addr: netip.MustParseAddr("10.0.0.2")})
	},
}

// A forward refuses datagrams while the service's port is closed, and delivers the first datagram
// after the port opens.
func TestForwardsRefuseDatagrams(t *testing.T) {
	for name, open := range leadingUDP {
		t.Run(name, func(t *testing.T) {
			a, b := operatortest.Two(t, node.Config{})
			service, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(
				netip.MustParseAddrPort("127.0.0.1:0")))
			require.NoError(t, err)
			to := netip.MustParseAddrPort(service.LocalAddr().String())
			require.NoError(t, service.Close())
			fw, err := open(b, to)
			require.NoError(t, err)
			client, err := a.Node.Packets.Dial(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), to.Port()))
			require.NoError(t, err)
			defer client.Close()
			limit(t, client)
			for range 3 {
				_, err = client.Write([]byte("is somebody there?"))
				require.NoError(t, err)
				_, err = client.Read(make([]byte, 1))
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
			}
			assert.Equal(t, 1, fw.State().Open, "RFC 4787 REQ-12: an error ends no flow")

			service, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(to))
			require.NoError(t, err)
			defer service.Close()
			limit(t, &udpConn{service})
			_, err = client.Write([]byte("and now?"))
			require.NoError(t, err)
			buf := make([]byte, 100)
			k, from, err := service.ReadFromUDPAddrPort(buf)
			require.NoError(t, err)
			assert.Equal(t, "and now?", string(buf[:k]))
			_, err = service.WriteToUDPAddrPort([]byte("yes"), from)
			require.NoError(t, err)
			k, err = client.Read(buf)
			require.NoError(t, err)
			assert.Equal(t, "yes", string(buf[:k]))

			require.NoError(t, fw.Close(false))
			require.Eventually(t, func() bool { return len(forwards(t, b)) == 0 }, 20*time.Second,
				time.Millisecond, "datagrams have no end of their own to wait for")
		})
	}
}

// An ICMP port unreachable about an answer does not mean that the service's port is closed.
func TestForwardsRefuseOnlyForTheirService(t *testing.T) {
	a, b := operatortest.Two(t, node.Config{})
	service, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(
		netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, err)
	defer service.Close()
	limit(t, &udpConn{service})
	to := netip.MustParseAddrPort(service.LocalAddr().String())
	fw, err := leadingUDP["splice"](b, to)
	require.NoError(t, err)
	ask := func() (*node.PacketConn, netip.AddrPort) {
		client, err := a.Node.Packets.Dial(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), to.Port()))
		require.NoError(t, err)
		limit(t, client)
		_, err = client.Write([]byte("?"))
		require.NoError(t, err)
		_, from, err := service.ReadFromUDPAddrPort(make([]byte, 1))
		require.NoError(t, err)
		return client, from
	}
	gone, from := ask()
	require.NoError(t, gone.Close())
	_, err = service.WriteToUDPAddrPort([]byte("!"), from)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return fw.State().Failed == 1 }, 20*time.Second,
		time.Millisecond, "the client's port is closed")

	next, from := ask() // A receives earlier packets from B before the answer
	defer next.Close()
	_, err = service.WriteToUDPAddrPort([]byte("!"), from)
	require.NoError(t, err)
	_, err = next.Read(make([]byte, 1))
	require.NoError(t, err)
	links, err := control.Ask(t.Context(), a, control.Interfaces{})
	require.NoError(t, err)
	assert.EqualValues(t, 2, links[0].In.Packets, "both answers, and no refusal")
}
