//go:build linux

package lead

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/bench/end"
	"github.com/tidepool-net/tidepool/internal/link"
)

// Path is the path between two ends.
type Path struct {
	// Between is empty for a direct link, router for a tidepool router, or relay for a relay that
	// forwards any stack's packets.
	Between string
	Loss    float64 // drop probability in each direction
	Delay   time.Duration
	Seed    uint64
	IPv6    bool
}

// addr returns an address of the network in the path's family: 10.1.0.2 is 2001:db8:1::2.
func (p *Path) addr(a netip.Addr) netip.Addr {
	if !p.IPv6 {
		return a
	}
	b := a.As4()
	return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 5: b[1], 15: b[3]})
}

// Bed holds the processes of one run.
type Bed struct {
	Server, Client, Between *Child
}

// End ends all processes.
func (b *Bed) End() {
	for _, c := range []*Child{b.Client, b.Server, b.Between} {
		if c != nil {
			c.End()
		}
	}
}

// Addresses of the ends, and of a router's two interfaces.
var (
	serverAddr = netip.AddrFrom4([4]byte{10, 0, 0, 1})
	routerNear = netip.AddrFrom4([4]byte{10, 0, 0, 2})
	routerFar  = netip.AddrFrom4([4]byte{10, 1, 0, 1})
	clientAddr = netip.AddrFrom4([4]byte{10, 1, 0, 2})
	clientNear = routerNear // without a router, both ends are on one link
)

// loopback returns free UDP ports on the loopback interface.
func loopback(count int) ([]netip.AddrPort, error) {
	ports, err := link.FreePorts(count)
	if err != nil {
		return nil, err
	}
	list := make([]netip.AddrPort, count)
	for i, p := range ports {
		list[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(p))
	}
	return list, nil
}

func (p *Path) side(udp, peer netip.AddrPort, addr, neighbor netip.Addr) end.Side {
	return side(udp, peer, p.addr(addr), p.addr(neighbor))
}

func side(udp, peer netip.AddrPort, addr, neighbor netip.Addr) end.Side {
	return end.Side{UDP: udp, Peer: peer, Addr: addr, Neighbor: neighbor}
}

// raise starts two ends of one stack over UDP, and the router or relay between them.
func raise(ctx context.Context, e end.Spec, p Path) (*Bed, error) {
	udp, err := loopback(4)
	if err != nil {
		return nil, err
	}
	server, client, between := e, e, e
	server.Work = end.Work{}
	server.Sides = []end.Side{p.side(udp[0], udp[1], serverAddr, clientNear)}
	client.Sides = []end.Side{p.side(udp[1], udp[0], clientNear, serverAddr)}
	server.Far, client.Far = p.addr(clientNear), p.addr(serverAddr)
	switch p.Between {
	case "router":
		server.Sides = []end.Side{p.side(udp[0], udp[1], serverAddr, routerNear)}
		client.Sides = []end.Side{p.side(udp[3], udp[2], clientAddr, routerFar)}
		server.Far = p.addr(clientAddr)
		between.Sides = []end.Side{
			p.side(udp[1], udp[0], routerNear, serverAddr),
			p.side(udp[2], udp[3], routerFar, clientAddr),
		}
	case "relay":
		client.Sides[0].UDP, client.Sides[0].Peer = udp[3], udp[2]
		between.Sides = []end.Side{
			{UDP: udp[1], Peer: udp[0]}, {UDP: udp[2], Peer: udp[3]},
		}
	}
	server.Profile = suffixed(e.Profile, "receive")
	client.Profile = suffixed(e.Profile, "send")
	b := &Bed{}
	if p.Between != "" {
		between.Stack, between.Work = p.Between, end.Work{}
		between.Loss, between.Delay, between.Seed = p.Loss, p.Delay, p.Seed
		between.Profile = suffixed(e.Profile, "router")
		if b.Between, _, err = Start(ctx, nil, &between); err != nil {
			return nil, err
		}
	}
	return b, b.ends(ctx, nil, nil, &server, &client)
}

// ends starts both ends, each with its command prefix.
func (b *Bed) ends(ctx context.Context, near, far []string, server, client *end.Spec) (err error) {
	if b.Server, _, err = Start(ctx, near, server); err == nil {
		b.Client, _, err = Start(ctx, far, client)
	}
	if err != nil {
		b.End()
		return fmt.Errorf("start %s: %w", server.Stack, err)
	}
	return nil
}

func suffixed(path, suffix string) string {
	if path == "" {
		return ""
	}
	return path + "." + suffix
}
