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

// carrier moves the bytes of a stream. Its methods but close are called once.
type carrier interface {
	// send sends until the test halts, receive takes what comes until the stream is closed; what
	// is behind the end of the test does not count. An error is why it went no further.
	send(s *stream) error
	receive(s *stream) error
	// halt has send return soon.
	halt()
	// finish closes the stream in order, and close at once.
	finish()
	close()
}

// stream is one stream of a test.
type stream struct {
	test    *test
	id      int // in messages
	socket  int // in reports
	sender  bool
	carrier carrier
	local   netip.AddrPort
	remote  netip.AddrPort

	moved   atomic.Int64 // bytes
	packets atomic.Int64 // datagrams that were sent
	mu      sync.Mutex
	arrived Arrivals

	// The control goroutine's: what there was when counting began, and at the last report.
	base, last tally
	seen       peaks
}

// tally is what a stream has come to.
type tally struct {
	bytes, retransmits, packets, lost, early int64
}

func (c tally) minus(d tally) tally {
	return tally{
		c.bytes - d.bytes, c.retransmits - d.retransmits, c.packets - d.packets, c.lost - d.lost,
		c.early - d.early,
	}
}

func (c tally) plus(d tally) tally {
	return tally{
		c.bytes + d.bytes, c.retransmits + d.retransmits, c.packets + d.packets, c.lost + d.lost,
		c.early + d.early,
	}
}

// peaks are what reports have shown of a TCP sender, windows in bytes, round trips in
// microseconds.
type peaks struct {
	cwnd, wnd, maxRTT, minRTT, sumRTT, n int64
}

func (s *stream) count(i *tcp.Info) tally {
	c := tally{bytes: s.moved.Load(), packets: s.packets.Load()}
	if i != nil {
		c.retransmits = int64(i.Retransmits)
	}
	if s.test.group.params.UDP && !s.sender {
		s.mu.Lock()
		c.packets, c.lost, c.early = int64(s.arrived.Highest), s.arrived.Lost, s.arrived.Early
		s.mu.Unlock()
	}
	return c
}

// jitter is UDP's, of a receiver.
func (s *stream) jitter() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived.Jitter
}

// info is what TCP tells of the stream's sender; nil: it is none.
func (s *stream) info() *tcp.Info {
	c, ok := s.carrier.(*byteCarrier)
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
		return s.carrier.send(s)
	}
	return s.carrier.receive(s)
}

// turn waits until the stream may send a block, and reports whether it shall.
func (s *stream) turn(pace *Pace) bool {
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
			wait = time.Hour // the others finish what they have taken
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-t.group.stop:
		}
		timer.Stop()
	}
}

// pace is how fast the stream may send.
func (s *stream) pace() *Pace {
	p := &s.test.group.params
	return &Pace{Rate: p.Bandwidth, Block: p.Len, Burst: p.Burst}
}

// took counts what has come, unless the test is over.
func (s *stream) took(n int) {
	t := s.test
	if t.group.halted.Load() {
		return
	}
	s.moved.Add(int64(n))
	t.group.moved(&t.group.gained, n)
}

// payload is what is sent: random, so that nothing on the way can make it smaller.
func payload(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(0x7ea1, uint64(n))) // the same every time: nobody looks at it
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// byteCarrier carries a stream of bytes: TCP's or RCP's.
type byteCarrier struct {
	conn interface {
		net.Conn
		Abort()
	}
	tcp *node.Conn // nil: it is RCP's
}

func (b *byteCarrier) send(s *stream) error {
	block := payload(s.test.group.params.Len)
	for pace := s.pace(); s.turn(pace); {
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

func (b *byteCarrier) receive(s *stream) error {
	buf := make([]byte, max(s.test.group.params.Len, 4<<10))
	for {
		n, err := b.conn.Read(buf)
		s.took(n)
		switch {
		case errors.Is(err, io.EOF), err != nil && s.test.group.halted.Load():
			return nil
		case err != nil:
			return streamError(err)
		}
	}
}

func (b *byteCarrier) halt()   { _ = b.conn.SetWriteDeadline(time.Unix(1, 0)) } // or it is closed
func (b *byteCarrier) finish() { _ = b.conn.Close() }
func (b *byteCarrier) close()  { b.conn.Abort() }

// streamError is an error of a stream in a test's words.
func streamError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return control.Reason(err)
}

// rcpConfig is how RCP behaves where it is measured: what it has not sent yet is not worth much.
func rcpConfig() node.RCPConfig {
	return node.RCPConfig{
		MaxRTO: 100 * time.Millisecond, SendBuffer: 64 << 10,
	}
}
