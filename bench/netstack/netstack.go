// Package netstack makes gVisor's netstack a subject of the examiner.
package netstack

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/tidepool-net/tidepool/examine"
)

// Subject returns gVisor's netstack with its defaults and with SACK.
func Subject() examine.Subject { return &examine.Pipe{Title: "gVisor", Open: open} }

// host is a started stack with one interface.
type host struct {
	stack *stack.Stack
	link  *channel.Endpoint
	addr  tcpip.Address
	ended context.CancelFunc
	done  chan struct{}
}

const nic = 1

func open(l *examine.Link, output func(packet []byte)) (examine.PacketStack, error) {
	const packets, mtu = 4096, 1500
	h := &host{
		link: channel.New(packets, mtu, ""), done: make(chan struct{}),
		addr: tcpip.AddrFromSlice(l.Addr.Addr().AsSlice()),
		stack: stack.New(stack.Options{
			NetworkProtocols: []stack.NetworkProtocolFactory{ipv4.NewProtocol},
			TransportProtocols: []stack.TransportProtocolFactory{
				tcp.NewProtocol, icmp.NewProtocol4,
			},
		}),
	}
	sack := tcpip.TCPSACKEnabled(true)
	if err := h.stack.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); err != nil {
		return nil, fmt.Errorf("gVisor: SACK: %v", err)
	}
	if err := h.stack.CreateNIC(nic, h.link); err != nil {
		return nil, fmt.Errorf("gVisor: create the interface: %v", err)
	}
	at := tcpip.ProtocolAddress{
		Protocol: ipv4.ProtocolNumber, AddressWithPrefix: h.addr.WithPrefix(),
	}
	if err := h.stack.AddProtocolAddress(nic, at, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("gVisor: add the address: %v", err)
	}
	h.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	ctx, cancel := context.WithCancel(context.Background())
	h.ended = cancel
	go h.read(ctx, output)
	return h, nil
}

// read passes on what the stack sends.
func (h *host) read(ctx context.Context, output func(packet []byte)) {
	defer close(h.done)
	for {
		p := h.link.ReadContext(ctx)
		if p == nil {
			return
		}
		v := p.ToView()
		output(v.AsSlice())
		v.Release()
		p.DecRef()
	}
}

// Input implements examine.PacketStack.
func (h *host) Input(packet []byte) error {
	p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
	defer p.DecRef()
	h.link.InjectInbound(ipv4.ProtocolNumber, p)
	return nil
}

// Listen implements examine.PacketStack.
func (h *host) Listen(port uint16) (net.Listener, error) {
	return gonet.ListenTCP(h.stack, tcpip.FullAddress{Addr: h.addr, Port: port},
		ipv4.ProtocolNumber)
}

// Dial implements examine.PacketStack.
func (h *host) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	at := tcpip.FullAddress{Addr: tcpip.AddrFromSlice(to.Addr().AsSlice()), Port: to.Port()}
	return gonet.DialContextTCP(ctx, h.stack, at, ipv4.ProtocolNumber)
}

// Close implements examine.PacketStack.
func (h *host) Close() {
	h.ended()
	<-h.done
	h.stack.Destroy()
}
