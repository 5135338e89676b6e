package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/nat"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// reflector serves probes with four sockets, at two addresses and two ports.
type reflector struct {
	nat.Reflector
	sockets [2][2]*node.PacketConn
}

// serveProbes answers probes on a port and the next one, at two of the node's IPv4 addresses.
func serveProbes(n *node.Node, r control.NATServe) (control.NATServed, error) {
	port := cmp.Or(r.Port, nat.STUNPort)
	if port == 1<<16-1 {
		return control.NATServed{}, control.Misuse("nat serve: port %d: must be below 65535", port)
	}
	s := &reflector{}
	s.Ports = [2]uint16{port, port + 1}
	var addrs []netip.Addr
	err := n.Ask(func(st *stack.Stack, _ clock.Time) error {
		for _, f := range st.Interfaces().Infos() {
			if f.Addr.IsValid() {
				addrs = append(addrs, f.Addr.Addr())
			}
		}
		return nil
	})
	if err != nil {
		return control.NATServed{}, err
	}
	if len(addrs) < 2 {
		return control.NATServed{}, control.Misuse(
			"nat serve: the node must have two interfaces with IPv4 addresses")
	}
	s.Addrs = [2]netip.Addr(addrs[:2])
	done := control.NATServed{}
	for i, a := range s.Addrs {
		for k, port := range s.Ports {
			at := netip.AddrPortFrom(a, port)
			if s.sockets[i][k], err = n.Packets.Listen(at); err != nil {
				s.close()
				return control.NATServed{}, fmt.Errorf("nat serve: %w", control.Reason(err))
			}
			done.At = append(done.At, at)
		}
	}
	for i := range s.sockets {
		for k := range s.sockets[i] {
			go s.serve(i, k)
		}
	}
	return done, nil
}

func (s *reflector) close() {
	for _, pair := range s.sockets {
		for _, c := range pair {
			if c != nil {
				_ = c.Close() // the socket may be closed already
			}
		}
	}
}

// serve answers the probes that arrive at a socket. If one socket is closed, it closes all.
func (s *reflector) serve(addr, port int) {
	defer s.close()
	b := make([]byte, 2048)
	for {
		n, from, err := s.sockets[addr][port].ReadFromAddrPort(b)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			continue // the error is an ICMP error about an answer
		}
		if answer, a, p, ok := s.Answer(b[:n], from, addr, port); ok {
			_, _ = s.sockets[a][p].WriteToAddrPort(answer, from) // UDP may lose it anyway
		}
	}
}

// probeNAT finds out how the NATs on the path to a server behave.
func probeNAT(
	ctx context.Context, n *node.Node, r control.NATProbe,
) (control.NATProbed, error) {
	if r.Server.Port() == 0 {
		r.Server = netip.AddrPortFrom(r.Server.Addr(), nat.STUNPort)
	}
	if !r.Server.Addr().Is4() || !control.IsHost(r.Server.Addr()) {
		return control.NATProbed{}, control.Misuse("nat probe %v: must be an IPv4 address",
			r.Server)
	}
	var local netip.Addr // all probes use one source, although the server has two addresses
	err := n.Ask(func(st *stack.Stack, _ clock.Time) error {
		if local = st.Routing().LocalTo(r.Server.Addr()); !local.IsValid() {
			return fmt.Errorf("nat probe %v: %w", r.Server, stack.ErrNoRoute)
		}
		return nil
	})
	if err != nil {
		return control.NATProbed{}, err
	}
	var sockets [2]*node.PacketConn
	for i := range sockets {
		c, err := n.Packets.Listen(netip.AddrPortFrom(local, 0))
		if err != nil {
			return control.NATProbed{}, control.Reason(err)
		}
		defer func() { _ = c.Close() }()
		sockets[i] = c
	}
	found, err := runProbe(ctx, sockets, r.Server)
	if err != nil {
		return control.NATProbed{}, fmt.Errorf("nat probe %v: %w", r.Server, err)
	}
	done := control.NATProbed{Server: r.Server, Outside: found.Outside}
	done.Local = sockets[0].LocalAddr().(*net.UDPAddr).AddrPort()
	done.NAT = done.Local != done.Outside
	if !found.Single {
		done.Mapping, done.Filtering = found.Mapping.String(), found.Filtering.String()
	}
	return done, nil
}

func runProbe(
	ctx context.Context, sockets [2]*node.PacketConn, server netip.AddrPort,
) (nat.Found, error) {
	p := nat.NewProbe(server, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	start := time.Now()
	b := make([]byte, 2048)
	stop := context.AfterFunc(ctx, func() {
		for _, c := range sockets {
			_ = c.Close()
		}
	})
	defer stop()
	active := 0
	for {
		now := clock.Time(1 + time.Since(start))
		p.Advance(now)
		if found, done := p.Done(); done {
			if found.Failed {
				return found, fmt.Errorf("%w: `nat serve` must run there", control.ErrTimeout)
			}
			return found, nil
		}
		if m, to, socket, ok := p.Output(now); ok {
			active = socket
			if _, err := sockets[socket].WriteToAddrPort(m, to); err != nil && ctx.Err() == nil {
				return nat.Found{}, control.Reason(err)
			}
		}
		_ = sockets[active].SetReadDeadline(start.Add(time.Duration(p.Deadline())))
		n, _, err := sockets[active].ReadFromAddrPort(b)
		switch {
		case ctx.Err() != nil:
			return nat.Found{}, context.Cause(ctx)
		case err == nil:
			p.Input(b[:n])
		case errors.Is(err, net.ErrClosed):
			return nat.Found{}, control.ErrClosed
		}
	}
}
