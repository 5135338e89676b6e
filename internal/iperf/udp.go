package iperf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/udp"
)

const (
	// trainLength is the number of datagrams that a sender passes to the stack at once.
	trainLength = 32
	// udpBuffer is the receive buffer of a measuring socket in bytes.
	udpBuffer = 2 << 20
	// greetEvery is the time after which an unanswered greeting is repeated.
	greetEvery = time.Second
)

// datagramTransport is the transport of a UDP stream. A client's stream has its own socket; a
// server's streams share one, and a udpDemux reads it.
type datagramTransport struct {
	conn  *node.PacketConn
	to    netip.AddrPort // destination; invalid: conn is connected
	demux *udpDemux      // reads the datagrams; nil: the stream belongs to a client
}

func (d *datagramTransport) send(s *stream) error {
	p := &s.test.group.params
	blocks := make([][]byte, trainLength)
	for i := range blocks {
		blocks[i] = payload(p.Len)
	}
	number := uint64(0)
	writeHeader := func(b []byte) {
		number++
		Header{Sent: time.Duration(time.Now().UnixNano()), Number: number}.Put(b, p.Wide != 0)
	}
	for pace := s.pace(); s.waitToSend(pace); {
		k, sent := 1, s.moved.Load()
		writeHeader(blocks[0])
		for since := time.Since(s.test.group.began); k < trainLength; k++ {
			if pace.Wait(since, sent+int64(k*p.Len)) > 0 || !s.test.group.reserve() {
				break
			}
			writeHeader(blocks[k])
		}
		n, err := d.conn.WriteBatch(blocks[:k], d.to)
		s.moved.Add(int64(n * p.Len))
		s.packets.Add(int64(n))
		s.test.group.moved(&s.test.group.sent, n*p.Len)
		if err != nil && !s.test.group.halted.Load() {
			return streamError(err)
		}
	}
	return nil
}

// receive reads datagrams. For a server's stream, the udpDemux does that instead.
func (d *datagramTransport) receive(s *stream) error {
	if d.demux != nil {
		<-s.test.group.stop
		return nil
	}
	b := make([]byte, MaxDatagram)
	for {
		n, err := d.conn.Read(b)
		switch {
		case err != nil && s.test.group.halted.Load(), errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return streamError(err)
		}
		s.datagram(b[:n])
	}
}

func (d *datagramTransport) halt() {
	if d.demux == nil {
		_ = d.conn.SetWriteDeadline(time.Unix(1, 0)) // conn may be closed already
	}
}
func (d *datagramTransport) finish() {}
func (d *datagramTransport) close() {
	if d.demux == nil {
		_ = d.conn.Close()
	}
}

func (s *stream) datagram(b []byte) {
	h, ok := ParseHeader(b, s.test.group.params.Wide != 0)
	if !ok || s.test.group.halted.Load() {
		return // the test is over, or the datagram is too short, as a second reply to a greeting is
	}
	s.mu.Lock()
	s.arrived.Add(time.Duration(time.Now().UnixNano()), h)
	s.mu.Unlock()
	s.received(len(b))
}

// connectUDP opens a client's stream. It repeats the greeting until the server replies.
func (t *test) connectUDP(ctx context.Context, s *stream) error {
	c, err := t.host.node.Packets.Dial(s.remote)
	if err != nil {
		return err
	}
	s.transport, s.local, s.socket = &datagramTransport{conn: c}, portOf(c.LocalAddr()), c.SID()
	err = t.tuneUDP(c)
	if err == nil {
		err = greetUDP(ctx, c)
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = c.Close() // report only the first error
	}
	return err
}

func portOf(a net.Addr) netip.AddrPort {
	u, _ := a.(*net.UDPAddr) // other types of address do not occur
	return u.AddrPort()
}

func (t *test) tuneUDP(c *node.PacketConn) error {
	size := udpBuffer
	if t.group.params.Window > 0 {
		size = t.group.params.Window
	}
	if err := c.SetReadBuffer(size); err != nil {
		return err
	}
	return c.SetOptions(func(o *udp.Options) { o.TOS = uint8(t.group.params.TOS) })
}

func greetUDP(ctx context.Context, c *node.PacketConn) error {
	b := make([]byte, MaxDatagram)
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := c.Write(AppendGreeting(nil)); err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(greetEvery)); err != nil {
			return err
		}
		for {
			// A server that sends may send data before the reply.
			n, err := c.Read(b)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return err
			}
			if IsReply(b[:n]) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: no UDP reply from the server", control.ErrTimeout)
}

// udpDemux is a server's UDP port during a test. It assigns datagrams to streams by their source.
type udpDemux struct {
	test *test
	conn *node.PacketConn
	from netip.Addr         // address of the client
	open func(*stream) bool // accepts a stream; false: the test has all its streams

	mu      sync.Mutex
	streams map[netip.AddrPort]*stream // the streams of the test, by source
}

func (g *udpDemux) run() {
	b := make([]byte, MaxDatagram)
	for {
		n, from, err := g.conn.ReadFromAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || from.Addr() != g.from {
			continue // an ICMP error of one flow does not affect the other flows
		}
		g.mu.Lock()
		s := g.streams[from]
		g.mu.Unlock()
		switch {
		case IsGreeting(b[:n]):
			if s != nil || g.greet(from) {
				// If the reply is lost, the client repeats its greeting.
				_, _ = g.conn.WriteToAddrPort(AppendReply(nil), from)
			}
		case s != nil:
			s.datagram(b[:n])
		}
	}
}

// greet creates a stream for a new source.
func (g *udpDemux) greet(from netip.AddrPort) bool {
	s := &stream{
		test: g.test, socket: g.conn.SID(), remote: from,
		local: netip.AddrPortFrom(g.test.control.conn.Local().Addr(),
			portOf(g.conn.LocalAddr()).Port()),
		transport: &datagramTransport{conn: g.conn, to: from, demux: g},
	}
	g.mu.Lock()
	g.streams[from] = s
	g.mu.Unlock()
	if g.open(s) {
		return true
	}
	g.mu.Lock()
	delete(g.streams, from)
	g.mu.Unlock()
	return false
}
