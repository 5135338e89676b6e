//go:build linux

package end

import (
	"context"
	"fmt"
	"net"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// gvisor is gVisor's netstack with SACK and with buffers that grow up to 8 MiB.
type gvisor struct {
	spec  *Spec
	stack *stack.Stack
}

const gvisorNIC = 1

func openGvisor(spec *Spec) (host, error) {
	link, err := gvisorLink(spec)
	if err != nil {
		return nil, err
	}
	g := &gvisor{spec, stack.New(stack.Options{
		NetworkProtocols: []stack.NetworkProtocolFactory{
			ipv4.NewProtocol, ipv6.NewProtocol,
		},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})}
	rack := tcpip.TCPRecovery(0)
	sack, tune := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(true)
	congestion := tcpip.CongestionControlOption("cubic")
	if spec.Congestion != "" {
		congestion = tcpip.CongestionControlOption(spec.Congestion)
	}
	for _, o := range []tcpip.SettableTransportProtocolOption{
		&sack, &tune, &congestion, &rack,
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: 1 << 20, Max: 8 << 20},
		&tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: 4 << 20, Max: 8 << 20},
	} {
		if err := g.stack.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return nil, fmt.Errorf("gVisor, %T: %v", o, err)
		}
	}
	if err := g.stack.CreateNIC(gvisorNIC, link); err != nil {
		return nil, fmt.Errorf("gVisor: create the interface: %v", err)
	}
	at := tcpip.ProtocolAddress{
		Protocol:          g.protocol(),
		AddressWithPrefix: tcpip.AddrFromSlice(spec.Sides[0].Addr.AsSlice()).WithPrefix(),
	}
	if err := g.stack.AddProtocolAddress(gvisorNIC, at, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("gVisor: add the address: %v", err)
	}
	g.stack.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: gvisorNIC},
		{Destination: header.IPv6EmptySubnet, NIC: gvisorNIC},
	})
	return g, nil
}

// protocol returns the network protocol of the spec's addresses.
func (g *gvisor) protocol() tcpip.NetworkProtocolNumber {
	if g.spec.Sides[0].Addr.Is6() {
		return ipv6.ProtocolNumber
	}
	return ipv4.ProtocolNumber
}

func (g *gvisor) Listen(port uint16) (net.Listener, error) {
	addr := tcpip.AddrFromSlice(g.spec.Sides[0].Addr.AsSlice())
	return gonet.ListenTCP(g.stack, tcpip.FullAddress{Addr: addr, Port: port}, g.protocol())
}

func (g *gvisor) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	to := tcpip.FullAddress{Addr: tcpip.AddrFromSlice(g.spec.Far.AsSlice()), Port: port}
	return gonet.DialContextTCP(ctx, g.stack, to, g.protocol())
}

func (g *gvisor) Account(u *Usage) {
	s := g.stack.Stats()
	u.Packets = s.IP.PacketsSent.Value()
}

// Describe reads the stack's global counters: the stack has only one connection that sends.
func (g *gvisor) Describe(_ net.Conn, p *Path) {
	s := g.stack.Stats().TCP
	p.Retransmits = s.Retransmits.Value()
	p.RTOs = s.Timeouts.Value()
}

func (g *gvisor) Close() error { return nil }
