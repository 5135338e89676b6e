package portforward

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
	// flowSilence is how long a UDP flow stays open without datagrams. RFC 4787 §4.3 requires at
	// least two minutes.
	flowSilence = 2 * time.Minute
	maxDatagram = 1<<16 - 1
	// maxWaiting limits the bytes of datagrams that wait until their flow has a socket, for example
	// while a name is looked up. Further datagrams are dropped.
	maxWaiting = 1 << 20
)

// datagrams forwards UDP datagrams. Each sender has a flow with its own socket.
type datagrams struct {
	forward *Forward
	in      bool // direction: toward the virtual network
	dial    func() (net.Conn, error)
	reply   func(p []byte, to netip.AddrPort) error
	// refuse sends an ICMP port unreachable for a datagram of this length. It is nil if that is not
	// possible.
	refuse func(from netip.AddrPort, at netip.Addr, length int)

	mu      sync.Mutex
	flows   map[netip.AddrPort]*datagramFlow
	waiting int // number of waiting bytes of all flows
}

// datagramFlow is the flow of one sender.
type datagramFlow struct {
	*flow
	from  netip.AddrPort
	at    netip.Addr   // destination of the flow's first datagram
	last  atomic.Int64 // time of the last datagram, in Unix nanoseconds
	asked atomic.Int64 // length of the last datagram to the service

	answered atomic.Bool // the next datagram of the client confirms the flow

	// The following fields are guarded by datagrams.mu.
	conn    net.Conn // connection to the service; nil: it is being opened
	waiting [][]byte // datagrams that wait until there is a conn
	lost    bool     // conn could not be opened
}

// publishUDP is like Publish, for UDP.
func (s *Set) publishUDP(from, to netip.AddrPort) (*Forward, error) {
	l, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(from))
	if err != nil {
		return nil, fmt.Errorf("publish %v: %w", from,
			s.holder(machineError(err), control.DoorPublish, "udp", from))
	}
	fw := s.newForward(control.DoorPublish, "udp", l.LocalAddr().String(), to.String())
	fw.addr = l.LocalAddr()
	g := &datagrams{
		forward: fw, in: true, flows: map[netip.AddrPort]*datagramFlow{},
		dial: func() (net.Conn, error) {
			c, err := s.node.Packets.Dial(to)
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
	// Only the kernel can send an ICMP port unreachable to a sender on this machine.
	read := func(p []byte) (receivedDatagram, error) {
		k, from, err := l.ReadFromUDPAddrPort(p)
		return receivedDatagram{from: from, length: k}, err
	}
	err = s.admit(fw, func() { _ = l.Close() }, func() { g.run(read) })
	return fw, err
}

// exposeUDP is like Expose, for UDP.
func (s *Set) exposeUDP(port uint16, to string) (*Forward, error) {
	at := s.node.AllAddrs(port)
	l, err := s.node.Packets.Listen(at)
	if err != nil {
		return nil, fmt.Errorf("expose %d: %w", port,
			s.holder(control.Reason(err), control.DoorExpose, "udp", at))
	}
	fw := s.newForward(control.DoorExpose, "udp", strconv.Itoa(int(port)), to)
	fw.addr = l.LocalAddr()
	g := &datagrams{
		forward: fw, flows: map[netip.AddrPort]*datagramFlow{},
		dial: func() (net.Conn, error) { return fw.dial("udp", to) },
		reply: func(p []byte, to netip.AddrPort) error {
			_, err := l.WriteToAddrPort(p, to)
			return err
		},
		refuse: l.Refuse,
	}
	read := func(p []byte) (receivedDatagram, error) {
		r, err := l.Receive(p)
		return receivedDatagram{from: r.From, at: r.To, length: r.Len}, err
	}
	err = s.admit(fw, func() { _ = l.Close() }, func() { g.run(read) })
	return fw, err
}

// receivedDatagram describes a datagram that was received.
type receivedDatagram struct {
	from   netip.AddrPort
	at     netip.Addr // destination; invalid if it is not needed
	length int
}

// run forwards received datagrams until the forward is closed.
func (g *datagrams) run(read func([]byte) (receivedDatagram, error)) {
	defer g.forward.cut() // the flows end, because their answers need the listening socket
	buf := make([]byte, maxDatagram)
	for {
		a, err := read(buf)
		switch {
		case g.forward.listening.Err() != nil, errors.Is(err, net.ErrClosed):
			return
		case err != nil: // the error is an ICMP error about a datagram that was sent
			g.forward.failed(a.from.String(), machineError(err))
			continue
		}
		f, err := g.of(a)
		if err != nil {
			g.forward.failed(a.from.String(), err)
			continue
		}
		if f == nil {
			return
		}
		g.deliver(f, buf[:a.length])
	}
}

// deliver sends a datagram through its flow's socket, or queues it until there is one.
func (g *datagrams) deliver(f *datagramFlow, p []byte) {
	g.mu.Lock()
	conn := f.conn
	if conn == nil && !f.lost && g.waiting+len(p) <= maxWaiting {
		f.waiting = append(f.waiting, bytes.Clone(p))
		g.waiting += len(p)
	}
	g.mu.Unlock()
	if f.answered.CompareAndSwap(true, false) {
		f.confirm()
	}
	if conn != nil {
		g.write(f, conn, p)
	}
}

// waited returns the datagrams that wait for the socket. If no datagram waits, later ones use conn
// directly.
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

// drop discards the flow's waiting datagrams and all later ones.
func (g *datagrams) drop(f *datagramFlow) {
	g.mu.Lock()
	f.lost = true
	g.mu.Unlock()
	g.waited(f, nil)
}

func (g *datagrams) write(f *datagramFlow, conn net.Conn, p []byte) {
	g.countDatagram(f, g.in, len(p))
	f.asked.Store(int64(len(p)))
	_, err := conn.Write(p)
	if refused(err) { // the error concerns an earlier datagram, and this datagram was not sent
		g.reportError(f, err)
		_, err = conn.Write(p)
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		g.reportError(f, err)
	}
}

// reportError reports an ICMP error about an earlier datagram. If it is a port unreachable, the
// client gets one, too.
func (g *datagrams) reportError(f *datagramFlow, err error) {
	if refused(err) && g.refuse != nil {
		g.refuse(f.from, f.at, int(f.asked.Load()))
	}
	g.forward.failed(f.name, machineError(err))
}

// of returns a sender's flow. With the first datagram, it starts the flow. It returns nil if the
// forward is closed.
func (g *datagrams) of(a receivedDatagram) (*datagramFlow, error) {
	g.mu.Lock()
	f := g.flows[a.from]
	g.mu.Unlock()
	if f != nil {
		return f, nil
	}
	if g.forward.full() {
		return nil, fmt.Errorf("%w: %d flows are open", control.ErrNoPorts, cap(g.forward.room))
	}
	f = &datagramFlow{from: a.from, at: a.at}
	var ok bool
	if f.flow, ok = g.forward.enter(a.from.String(), func() {}); !ok {
		return nil, nil //nolint:nilnil // closed is no error
	}
	f.last.Store(time.Now().UnixNano())
	g.mu.Lock()
	g.flows[a.from] = f
	g.mu.Unlock()
	go g.serve(f)
	return f, nil
}

// serve opens the flow's socket and forwards the answers. It runs in a goroutine of the flow.
func (g *datagrams) serve(f *datagramFlow) {
	conn, err := g.dial()
	if err != nil {
		g.drop(f)
		g.end(f, err)
		return
	}
	defer func() { _ = conn.Close() }() // the connection may have been cut already
	f.onCut(func() { _ = conn.Close() })
	f.markEvictable()
	for list := g.waited(f, conn); len(list) > 0; list = g.waited(f, conn) {
		for _, p := range list {
			g.write(f, conn, p)
		}
	}
	g.answers(f, conn)
	g.end(f, nil)
}

// countDatagram counts a datagram and restarts the flow's idle timeout.
func (g *datagrams) countDatagram(f *datagramFlow, in bool, k int) {
	f.last.Store(time.Now().UnixNano())
	g.forward.count(in, k)
}

// answers forwards answers until the flow has been silent in both directions for flowSilence.
func (g *datagrams) answers(f *datagramFlow, conn net.Conn) {
	buf := make([]byte, maxDatagram)
	for {
		over := time.Unix(0, f.last.Load()).Add(flowSilence)
		if !time.Now().Before(over) || conn.SetReadDeadline(over) != nil {
			return
		}
		k, err := conn.Read(buf)
		if err == nil {
			g.countDatagram(f, !g.in, k)
			f.answered.Store(true)
			err = g.reply(buf[:k], f.from)
		}
		var slow net.Error
		switch {
		case err == nil, errors.As(err, &slow) && slow.Timeout():
		case errors.Is(err, net.ErrClosed):
			return
		default: // for example a port unreachable: the service may still start
			g.reportError(f, err)
		}
	}
}

// end removes a flow, and reports the reason if it is not nil.
func (g *datagrams) end(f *datagramFlow, reason error) {
	g.mu.Lock()
	delete(g.flows, f.from)
	g.mu.Unlock()
	f.leave(reason)
}
