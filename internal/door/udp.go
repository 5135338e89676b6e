package door

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

const (
	// flowSilence is how long a flow of datagrams lives without one: RFC 4787 §4.3, at least two
	// minutes.
	flowSilence = 2 * time.Minute
	maxDatagram = 1<<16 - 1
	// maxWaiting is how many bytes of a door's datagrams wait for the sockets of their flows, as
	// for an address to be looked up. What is more is dropped: nobody was promised that it arrives.
	maxWaiting = 1 << 20
)

// datagrams is what a door for datagrams leads on: a socket of its own for each of those who
// send to it.
type datagrams struct {
	door  *Door
	in    bool // what comes to the door goes into the virtual network
	dial  func() (net.Conn, error)
	reply func(p []byte, to netip.AddrPort) error

	mu      sync.Mutex
	flows   map[netip.AddrPort]*datagramFlow
	waiting int // bytes, of all flows
}

// datagramFlow is one of them.
type datagramFlow struct {
	*flow
	last atomic.Int64 // when a datagram passed, Unix nanoseconds

	// The door's mu is for these.
	conn    net.Conn // nil: it is being opened
	waiting [][]byte // for conn
	lost    bool     // there will be none
}

// publishUDP is Publish for datagrams.
func (s *Set) publishUDP(from, to netip.AddrPort) (*Door, error) {
	l, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(from))
	if err != nil {
		return nil, fmt.Errorf("publish %v: %w", from,
			s.holder(machineError(err), control.DoorPublish, "udp", from))
	}
	d := s.newDoor(control.DoorPublish, "udp", l.LocalAddr().String(), to.String())
	d.addr = l.LocalAddr()
	g := &datagrams{
		door: d, in: true, flows: map[netip.AddrPort]*datagramFlow{},
		dial: func() (net.Conn, error) {
			c, err := s.node.DialUDP(to)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		reply: func(p []byte, to netip.AddrPort) error {
			_, err := l.WriteToUDPAddrPort(p, to)
			return err
		},
	}
	err = s.admit(d, func() { _ = l.Close() }, func() { g.run(l.ReadFromUDPAddrPort) })
	return d, err
}

// exposeUDP is Expose for datagrams.
func (s *Set) exposeUDP(port uint16, to string) (*Door, error) {
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	l, err := s.node.ListenPacket(at)
	if err != nil {
		return nil, fmt.Errorf("expose %d: %w", port,
			s.holder(control.Reason(err), control.DoorExpose, "udp", at))
	}
	d := s.newDoor(control.DoorExpose, "udp", strconv.Itoa(int(port)), to)
	d.addr = l.LocalAddr()
	g := &datagrams{
		door: d, flows: map[netip.AddrPort]*datagramFlow{},
		dial: func() (net.Conn, error) { return d.dial("udp", to) },
		reply: func(p []byte, to netip.AddrPort) error {
			_, err := l.WriteToAddrPort(p, to)
			return err
		},
	}
	err = s.admit(d, func() { _ = l.Close() }, func() { g.run(l.ReadFromAddrPort) })
	return d, err
}

// run leads on what comes to the door, until it is closed.
func (g *datagrams) run(read func([]byte) (int, netip.AddrPort, error)) {
	defer g.door.cut() // an answer could not leave by the door any more
	buf := make([]byte, maxDatagram)
	for {
		k, from, err := read(buf)
		switch {
		case g.door.ends.Err() != nil, errors.Is(err, net.ErrClosed):
			return
		case err != nil: // ICMP's report about a datagram of ours
			g.door.failed(from.String(), machineError(err))
			continue
		}
		f, err := g.of(from)
		if err != nil {
			g.door.failed(from.String(), err)
			continue
		}
		if f == nil {
			return
		}
		g.lead(f, buf[:k])
	}
}

// lead leads a datagram on, or has it wait for the flow's socket.
func (g *datagrams) lead(f *datagramFlow, p []byte) {
	g.mu.Lock()
	conn := f.conn
	if conn == nil && !f.lost && g.waiting+len(p) <= maxWaiting {
		f.waiting = append(f.waiting, bytes.Clone(p))
		g.waiting += len(p)
	}
	g.mu.Unlock()
	if conn != nil {
		g.write(f, conn, p)
	}
}

// waited takes what waits for a flow's socket. When there is none, what comes goes there by itself.
func (g *datagrams) waited(f *datagramFlow, conn net.Conn) (list [][]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list, f.waiting = f.waiting, nil
	for _, p := range list {
		g.waiting -= len(p)
	}
	if len(list) == 0 {
		f.conn = conn
	}
	return list
}

// lose drops what waits for a flow's socket, and what comes to it from now on.
func (g *datagrams) lose(f *datagramFlow) {
	g.mu.Lock()
	f.lost = true
	g.mu.Unlock()
	g.waited(f, nil)
}

func (g *datagrams) write(f *datagramFlow, conn net.Conn, p []byte) {
	g.passed(f, g.in, len(p))
	if _, err := conn.Write(p); err != nil && !errors.Is(err, net.ErrClosed) {
		g.door.failed(f.name, machineError(err))
	}
}

// of is the flow of a sender, which begins with his first datagram; nil: the door is closed.
func (g *datagrams) of(from netip.AddrPort) (*datagramFlow, error) {
	g.mu.Lock()
	f, open := g.flows[from], len(g.flows)
	g.mu.Unlock()
	if f != nil {
		return f, nil
	}
	if open >= maxFlows {
		return nil, fmt.Errorf("%w: %d flows are open", control.ErrNoPorts, open)
	}
	f = &datagramFlow{}
	var ok bool
	if f.flow, ok = g.door.enter(from.String(), func() {}); !ok {
		return nil, nil //nolint:nilnil // no error: the door is closed
	}
	f.last.Store(time.Now().UnixNano())
	g.mu.Lock()
	g.flows[from] = f
	g.mu.Unlock()
	go g.serve(f, from)
	return f, nil
}

// serve opens a flow's socket and leads back what is answered. Nobody else waits for either.
func (g *datagrams) serve(f *datagramFlow, from netip.AddrPort) {
	conn, err := g.dial()
	if err != nil {
		g.lose(f)
		g.end(f, from, err)
		return
	}
	defer func() { _ = conn.Close() }() // it may be cut
	f.onCut(func() { _ = conn.Close() })
	for list := g.waited(f, conn); len(list) > 0; list = g.waited(f, conn) {
		for _, p := range list {
			g.write(f, conn, p)
		}
	}
	g.answers(f, conn, from)
	g.end(f, from, nil)
}

// passed notes that a datagram goes through.
func (g *datagrams) passed(f *datagramFlow, in bool, k int) {
	f.last.Store(time.Now().UnixNano())
	g.door.count(in, k)
}

// answers leads back what is answered to a flow, until both sides have been silent.
func (g *datagrams) answers(f *datagramFlow, conn net.Conn, to netip.AddrPort) {
	buf := make([]byte, maxDatagram)
	for {
		over := time.Unix(0, f.last.Load()).Add(flowSilence)
		if !time.Now().Before(over) || conn.SetReadDeadline(over) != nil {
			return
		}
		k, err := conn.Read(buf)
		if err == nil {
			g.passed(f, !g.in, k)
			err = g.reply(buf[:k], to)
		}
		var slow net.Error
		switch {
		case err == nil, errors.As(err, &slow) && slow.Timeout():
		case errors.Is(err, net.ErrClosed):
			return
		default: // nobody has the port there: ICMP says so, and the next datagram may be heard
			g.door.failed(f.name, machineError(err))
		}
	}
}

// end forgets a flow; a reason is told.
func (g *datagrams) end(f *datagramFlow, from netip.AddrPort, reason error) {
	g.mu.Lock()
	delete(g.flows, from)
	g.mu.Unlock()
	f.leave(reason)
}
