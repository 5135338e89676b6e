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
	// refuse tells who sent a datagram of so many bytes to an address of the door's that nobody has
	// the port; nil: he cannot be told.
	refuse func(from netip.AddrPort, at netip.Addr, length int)

	mu      sync.Mutex
	flows   map[netip.AddrPort]*datagramFlow
	waiting int // bytes, of all flows
}

// datagramFlow is one of them.
type datagramFlow struct {
	*flow
	from  netip.AddrPort
	at    netip.Addr   // which of the door's addresses the first was for
	last  atomic.Int64 // when a datagram passed, Unix nanoseconds
	asked atomic.Int64 // how long the last was that was led on

	answered atomic.Bool // once; the client's next datagram confirms the flow

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
	// The kernel alone tells a sender of this machine that nobody has a port.
	read := func(p []byte) (arrived, error) {
		k, from, err := l.ReadFromUDPAddrPort(p)
		return arrived{from: from, length: k}, err
	}
	err = s.admit(d, func() { _ = l.Close() }, func() { g.run(read) })
	return d, err
}

// exposeUDP is Expose for datagrams.
func (s *Set) exposeUDP(port uint16, to string) (*Door, error) {
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	l, err := s.node.Packets.Listen(at)
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
		refuse: l.Refuse,
	}
	read := func(p []byte) (arrived, error) {
		r, err := l.Receive(p)
		return arrived{from: r.From, at: r.To, length: r.Len}, err
	}
	err = s.admit(d, func() { _ = l.Close() }, func() { g.run(read) })
	return d, err
}

// arrived is a datagram that has come to a door.
type arrived struct {
	from   netip.AddrPort
	at     netip.Addr // which of the door's addresses it was for; invalid: it does not matter
	length int
}

// run leads on what comes to the door, until it is closed.
func (g *datagrams) run(read func([]byte) (arrived, error)) {
	defer g.door.cut() // an answer could not leave by the door any more
	buf := make([]byte, maxDatagram)
	for {
		a, err := read(buf)
		switch {
		case g.door.ends.Err() != nil, errors.Is(err, net.ErrClosed):
			return
		case err != nil: // ICMP's report about a datagram of ours
			g.door.failed(a.from.String(), machineError(err))
			continue
		}
		f, err := g.of(a)
		if err != nil {
			g.door.failed(a.from.String(), err)
			continue
		}
		if f == nil {
			return
		}
		g.lead(f, buf[:a.length])
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
	if f.answered.CompareAndSwap(true, false) {
		f.confirm()
	}
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
	f.asked.Store(int64(len(p)))
	_, err := conn.Write(p)
	if refused(err) { // it is of an earlier one, and kept this one back
		g.wrong(f, err)
		_, err = conn.Write(p)
	}
	if err != nil && !errors.Is(err, net.ErrClosed) {
		g.wrong(f, err)
	}
}

// wrong tells what ICMP has reported about an earlier datagram, and passes on that nobody has the
// port.
func (g *datagrams) wrong(f *datagramFlow, err error) {
	if refused(err) && g.refuse != nil {
		g.refuse(f.from, f.at, int(f.asked.Load()))
	}
	g.door.failed(f.name, machineError(err))
}

// of is the flow of a sender, which begins with his first datagram; nil: the door is closed.
func (g *datagrams) of(a arrived) (*datagramFlow, error) {
	g.mu.Lock()
	f := g.flows[a.from]
	g.mu.Unlock()
	if f != nil {
		return f, nil
	}
	if g.door.crowded() {
		return nil, fmt.Errorf("%w: %d flows are open", control.ErrNoPorts, cap(g.door.room))
	}
	f = &datagramFlow{from: a.from, at: a.at}
	var ok bool
	if f.flow, ok = g.door.enter(a.from.String(), func() {}); !ok {
		return nil, nil //nolint:nilnil // no error: the door is closed
	}
	f.last.Store(time.Now().UnixNano())
	g.mu.Lock()
	g.flows[a.from] = f
	g.mu.Unlock()
	go g.serve(f)
	return f, nil
}

// serve opens a flow's socket and leads back what is answered. Nobody else waits for either.
func (g *datagrams) serve(f *datagramFlow) {
	conn, err := g.dial()
	if err != nil {
		g.lose(f)
		g.end(f, err)
		return
	}
	defer func() { _ = conn.Close() }() // it may be cut
	f.onCut(func() { _ = conn.Close() })
	f.mayGo()
	for list := g.waited(f, conn); len(list) > 0; list = g.waited(f, conn) {
		for _, p := range list {
			g.write(f, conn, p)
		}
	}
	g.answers(f, conn)
	g.end(f, nil)
}

// passed notes that a datagram goes through.
func (g *datagrams) passed(f *datagramFlow, in bool, k int) {
	f.last.Store(time.Now().UnixNano())
	g.door.count(in, k)
}

// answers leads back what is answered to a flow, until both sides have been silent.
func (g *datagrams) answers(f *datagramFlow, conn net.Conn) {
	buf := make([]byte, maxDatagram)
	for {
		over := time.Unix(0, f.last.Load()).Add(flowSilence)
		if !time.Now().Before(over) || conn.SetReadDeadline(over) != nil {
			return
		}
		k, err := conn.Read(buf)
		if err == nil {
			g.passed(f, !g.in, k)
			f.answered.Store(true)
			err = g.reply(buf[:k], f.from)
		}
		var slow net.Error
		switch {
		case err == nil, errors.As(err, &slow) && slow.Timeout():
		case errors.Is(err, net.ErrClosed):
			return
		default: // nobody has the port there: ICMP says so, and the next datagram may be heard
			g.wrong(f, err)
		}
	}
}

// end forgets a flow; a reason is told.
func (g *datagrams) end(f *datagramFlow, reason error) {
	g.mu.Lock()
	delete(g.flows, f.from)
	g.mu.Unlock()
	f.leave(reason)
}
