package portforward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Splice forwards every port of an address that has no listener to the same port of this machine.
func (s *Set) Splice(r control.Splice) (*Forward, error) {
	to := r.To
	if !to.IsValid() {
		to = loopback
	}
	if !control.IsHost(r.Addr) || !control.IsHost(to) {
		return nil, control.Misuse("splice %v to %v: must be addresses of hosts", r.Addr, to)
	}
	fw := s.newForward(control.DoorSplice, "tcp+udp", r.Addr.String(), to.String())
	fw.addr = &net.IPAddr{IP: r.Addr.AsSlice()}
	if err := s.checkOwnAddr(r.Addr); err != nil {
		fw.stopListening()
		return nil, fmt.Errorf("splice %v: %w", r.Addr, err)
	}
	return s.takeAll(fw, spliceRoute(r.Addr, to), nil)
}

// takeAll starts a forward of every address. It calls echo, if not nil, with the echo requests.
func (s *Set) takeAll(fw *Forward, way route, echo func(*stack.Echo) bool) (*Forward, error) {
	take := &s.node.Forwarders
	err := take.TakeAll(fw.takeTCP(way), fw.takeUDP(way))
	if err == nil {
		err = take.TakeEcho(echo)
	}
	if err != nil {
		fw.stopListening()
		return nil, fmt.Errorf("%s: %w", fw.state.Kind, err)
	}
	err = s.admit(fw, func() {
		_ = take.TakeEcho(nil) // an error means that the node is closed
		_ = take.TakeTCP(nil)
		_ = take.TakeUDP(nil)
	}, func() { <-fw.listening.Done() })
	return fw, err
}

// checkOwnAddr returns an error if no interface has the address.
func (s *Set) checkOwnAddr(a netip.Addr) error {
	return s.node.Ask(func(*stack.Stack, clock.Time) error {
		if a.IsValid() && slices.ContainsFunc(s.node.Ifaces(), func(f stack.Interface) bool {
			return f.Addr.Addr() == a || slices.ContainsFunc(f.IPv6,
				func(p netip.Prefix) bool { return p.Addr() == a })
		}) {
			return nil
		}
		return control.Misuse("must be an address of this node")
	})
}

// route maps a virtual destination to an address in this machine's network, or returns false.
type route func(to netip.AddrPort) (machine netip.AddrPort, ok bool)

func spliceRoute(addr, to netip.Addr) route {
	return func(at netip.AddrPort) (netip.AddrPort, bool) {
		return netip.AddrPortFrom(to, at.Port()), at.Addr() == addr
	}
}

func (fw *Forward) takeTCP(way route) func(*node.Caught) {
	return func(c *node.Caught) {
		if there, ok := way(c.Local()); ok {
			fw.connect(c, fw.client(c.Remote(), there), there.String())
		}
	}
}

// client returns the name of a client, for a forward of every address.
func (fw *Forward) client(from, there netip.AddrPort) string {
	if fw.state.Kind == control.DoorGateway {
		return fmt.Sprintf("%v to %v", from, there)
	}
	return fmt.Sprintf("%v to port %d", from, there.Port())
}

func (fw *Forward) takeUDP(way route) func(*node.CaughtUDP) {
	return func(c *node.CaughtUDP) {
		there, ok := way(c.Local())
		if !ok {
			return
		}
		f, ok := fw.enter(fw.client(c.Remote(), there), func() {})
		if !ok {
			return
		}
		near, err := fw.dial("udp", there.String())
		if err != nil {
			f.leave(err)
			return
		}
		v, err := c.Accept()
		if err != nil {
			_ = near.Close()
			f.leave(err)
			return
		}
		end := func() {
			_ = near.Close()
			_ = v.Close()
		}
		f.onCut(end)
		f.markEvictable()
		defer context.AfterFunc(fw.listening, end)() // UDP has no FIN
		fw.exchange(f, near, v)
		f.leave(nil)
	}
}

// exchange copies datagrams between a service of this machine and a virtual client, until both are
// silent or one is closed. It closes both.
func (fw *Forward) exchange(f *flow, near net.Conn, client *node.PacketConn) {
	at, _ := netip.ParseAddrPort(client.LocalAddr().String())
	one := &datagramFlow{flow: f, from: client.Peer(), at: at.Addr(), conn: near}
	one.last.Store(time.Now().UnixNano())
	g := &datagrams{forward: fw, refuse: client.Refuse}
	g.reply = func(p []byte, _ netip.AddrPort) error {
		_, err := client.Write(p)
		if refused(err) { // the error concerns an earlier datagram, and this datagram was not sent
			fw.failed(f.name, machineError(err))
			_, err = client.Write(p)
		}
		return err
	}
	var asking sync.WaitGroup
	asking.Go(func() { g.ask(one, client) })
	g.answers(one, near)
	_ = near.Close() // the flow may have been cut already
	_ = client.Close()
	asking.Wait()
}

// ask forwards a client's datagrams to its flow until the client's socket is closed.
func (g *datagrams) ask(f *datagramFlow, client net.Conn) {
	buf := make([]byte, maxDatagram)
	for {
		k, err := client.Read(buf)
		switch {
		case err == nil:
			g.deliver(f, buf[:k])
		case errors.Is(err, net.ErrClosed):
			return
		default: // the error is an ICMP error about an answer
			g.forward.failed(f.name, machineError(err))
		}
	}
}

func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
