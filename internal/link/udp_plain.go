package link

import (
	"errors"
	"net"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// maxDatagram is the largest UDP payload, rounded up.
const maxDatagram = 1 << 16

// plainSocket sends one datagram per call and reads in a goroutine, which every system supports.
// Sending may block briefly until the kernel's queue has room.
type plainSocket struct {
	conn   *net.UDPConn
	inbox  *inbox
	buf    []byte // memory for one packet
	pushed int
	stats  Info
	count  SocketCounters
}

func openPlain(cfg Config, bind netip.AddrPort) (*plainSocket, error) {
	network := "udp" + networkOf(bind.Addr())[len("ip"):]
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(bind))
	if err != nil {
		return nil, err
	}
	s := &plainSocket{conn: conn, inbox: newInbox(), buf: make([]byte, 0, maxDatagram)}
	s.stats = Info{
		Local:      addressOf(conn.LocalAddr().(*net.UDPAddr).AddrPort()).addrPort(),
		Offload:    OffloadPlain,
		RecvBuffer: setLargest(conn.SetReadBuffer, cfg.RecvBuffer),
		SendBuffer: setLargest(conn.SetWriteBuffer, cfg.SendBuffer),
	}
	readBufferSizes(conn, &s.stats)
	go s.inbox.fill(conn)
	return s, nil
}

// setLargest requests size. If the system refuses, setLargest requests half, and so on.
func setLargest(set func(int) error, size int) int {
	const least = 4096
	for ; size >= least; size /= 2 {
		if set(size) == nil {
			return size
		}
	}
	return 0
}

func (s *plainSocket) recv() ([]datagram, error) { return s.inbox.take() }

func (s *plainSocket) resignal() { s.inbox.resignal() }

func (s *plainSocket) feed(ready func()) { s.inbox.feed(ready) }

// push sends at once, because this socket does not batch.
func (s *plainSocket) push(to *neighbor, t *buffer.Train) bool {
	at := 0
	var rest []byte // rest of t.Pieces[at-1]
	for i := range t.Count {
		size := min(t.Size, t.Bytes-i*t.Size)
		s.buf = s.buf[:0]
		for len(s.buf) < size {
			if len(rest) == 0 {
				rest = t.Pieces[at]
				at++
			}
			n := min(size-len(s.buf), len(rest))
			s.buf = append(s.buf, rest[:n]...)
			rest = rest[n:]
		}
		s.send(to)
	}
	s.pushed += t.Count
	return true
}

// send sends the packet in buf. Errors of the network are only counted.
func (s *plainSocket) send(to *neighbor) {
	_, err := s.conn.WriteToUDPAddrPort(s.buf, to.to.addrPort())
	if errors.Is(err, errRefused) { // the error of an earlier packet; this one was not sent
		s.count.Absent++
		_, err = s.conn.WriteToUDPAddrPort(s.buf, to.to.addrPort())
	}
	switch {
	case err == nil:
		s.count.Writes++
		to.sent(1, len(s.buf))
	case errors.Is(err, errMessageSize):
		to.lost(1, DropTooBig)
	default:
		to.lost(1, DropRefused)
		to.problem = err
	}
}

func (s *plainSocket) flush() (int, error) {
	n := s.pushed
	s.pushed = 0
	return n, nil
}

func (s *plainSocket) info() Info { return s.stats }

func (s *plainSocket) counters(c *SocketCounters) {
	c.Writes, c.Absent = s.count.Writes, s.count.Absent
	s.inbox.counters(c)
	c.Overflow = overflow(s.conn)
}

func (s *plainSocket) close() error {
	err := s.conn.Close()
	s.inbox.close()
	return err
}
