package iperf

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// transport moves the bytes of a stream. Only halt and close may be called several times.
type transport interface {
	// send sends until the test halts. receive reads until the stream is closed; bytes after the
	// end of the test do not count.
	send(s *stream) error
	receive(s *stream) error
	// halt makes send return soon.
	halt()
	// finish closes the stream in order; close closes it at once.
	finish()
	close()
}

// stream is one stream of a test.
type stream struct {
	test      *test
	id        int // number of the stream in messages
	socket    int // number of the stream in reports
	sender    bool
	transport transport
	local     netip.AddrPort
	remote    netip.AddrPort

	moved   atomic.Int64 // bytes sent or received
	packets atomic.Int64 // datagrams sent
	mu      sync.Mutex
	arrived Arrivals

	// base holds the totals when counting began, last those at the last report. The control
	// goroutine owns both.
	base, last totals
	seen       peaks
}

// totals are the counters of a stream.
type totals struct {
	bytes, retransmits, packets, lost, early int64
}

func (c totals) minus(d totals) totals {
	return totals{
		c.bytes - d.bytes, c.retransmits - d.retransmits, c.packets - d.packets, c.lost - d.lost,
		c.early - d.early,
	}
}

func (c totals) plus(d totals) totals {
	return totals{
		c.bytes + d.bytes, c.retransmits + d.retransmits, c.packets + d.packets, c.lost + d.lost,
		c.early + d.early,
	}
}

// peaks are values from a TCP sender's reports: windows in bytes, round trips in microseconds.
type peaks struct {
	cwnd, wnd, maxRTT, minRTT, sumRTT, n int64
}

func (s *stream) count(i *tcp.Info) totals {
	c := totals{bytes: s.moved.Load(), packets: s.packets.Load()}
	if i != nil {
		c.retransmits = int64(i.TotalRetrans)
	}
	if s.test.group.params.UDP && !s.sender {
		s.mu.Lock()
		c.packets, c.lost, c.early = int64(s.arrived.Highest), s.arrived.Lost, s.arrived.Early
		s.mu.Unlock()
	}
	return c
}

func (s *stream) jitter() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived.Jitter
}

// info returns the TCP state of a sender; nil if the stream does not use TCP.
func (s *stream) info() *tcp.Info {
	c, ok := s.transport.(*byteTransport)
	if !ok || !s.sender || c.tcp == nil {
		return nil
	}
	i, err := c.tcp.Info()
	if err != nil {
		return nil
	}
	return &i
}

func (s *stream) run() error {
	if s.sender {
		return s.transport.send(s)
	}
	return s.transport.receive(s)
}

// waitToSend waits until the stream may send a block. It returns false when the test ends.
func (s *stream) waitToSend(pace *Pace) bool {
	t := s.test
	for {
		if t.group.halted.Load() {
			return false
		}
		wait := pace.Wait(time.Since(t.group.began), s.moved.Load())
		if wait == 0 && t.group.reserve() {
			return true
		}
		if wait == 0 {
			// All bytes are reserved: the stream waits until the others have sent theirs.
			wait = time.Hour
		}
		select {
		case <-time.After(wait):
		case <-t.group.stop:
		}
	}
}

func (s *stream) pace() *Pace {
	p := &s.test.group.params
	return &Pace{Rate: p.Bandwidth, Block: p.Len, Burst: p.Burst}
}

// received counts received bytes, unless the test has ended.
func (s *stream) received(n int) {
	t := s.test
	if t.group.halted.Load() {
		return
	}
	s.moved.Add(int64(n))
	t.group.moved(&t.group.received, n)
}

// payload returns n pseudo-random bytes, which a link cannot compress.
func payload(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(0x7ea1, uint64(n))) // a fixed seed is sufficient
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// byteTransport is the transport of a byte stream over TCP or RCP.
type byteTransport struct {
	conn interface {
		net.Conn
		Abort()
	}
	tcp *node.Conn // TCP connection; nil: the stream uses RCP
}

func (b *byteTransport) send(s *stream) error {
	block := payload(s.test.group.params.Len)
	for pace := s.pace(); s.waitToSend(pace); {
		n, err := b.conn.Write(block)
		s.moved.Add(int64(n))
		s.test.group.moved(&s.test.group.sent, n)
		switch {
		case err != nil && s.test.group.halted.Load():
			return nil
		case err != nil:
			return streamError(err)
		}
	}
	return nil
}

func (b *byteTransport) receive(s *stream) error {
	buf := make([]byte, max(s.test.group.params.Len, 4<<10))
	for {
		n, err := b.conn.Read(buf)
		s.received(n)
		switch {
		case errors.Is(err, io.EOF), err != nil && s.test.group.halted.Load():
			return nil
		case err != nil:
			return streamError(err)
		}
	}
}

// halt ignores the error of a connection that is already closed.
func (b *byteTransport) halt()   { _ = b.conn.SetWriteDeadline(time.Unix(1, 0)) }
func (b *byteTransport) finish() { _ = b.conn.Close() }
func (b *byteTransport) close()  { b.conn.Abort() }

// streamError returns the reason of an error; nil for the deadline that halt sets.
func streamError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return control.Reason(err)
}

// rcpConfig returns the configuration of measured RCP connections. Its send buffer is small, so
// that few bytes are unsent when the test ends.
func rcpConfig() node.RCPConfig {
	return node.RCPConfig{
		MaxRTO: 100 * time.Millisecond, SendBuffer: 64 << 10,
	}
}
