package node

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
	"github.com/tidepool-net/tidepool/internal/perf"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// perfCarrier moves the bytes of a stream. Its methods but close are called once.
type perfCarrier interface {
	// send sends until the test halts, receive takes what comes until the stream is closed; what
	// is behind the end of the test does not count. An error is why it went no further.
	send(s *perfStream) error
	receive(s *perfStream) error
	// halt has send return soon.
	halt()
	// finish closes the stream in order, and close at once.
	finish()
	close()
}

// perfStream is one stream of a test.
type perfStream struct {
	test    *perfTest
	id      int // in messages
	socket  int // in reports
	sender  bool
	carrier perfCarrier
	local   netip.AddrPort
	remote  netip.AddrPort

	moved   atomic.Int64 // bytes
	packets atomic.Int64 // datagrams that were sent
	mu      sync.Mutex
	arrived perf.Arrivals

	// The control goroutine's: what there was when counting began, and at the last report.
	base, last perfCount
	seen       perfPeaks
}

// perfCount is what a stream has come to.
type perfCount struct {
	bytes, retransmits, packets, lost, early int64
}

func (c perfCount) minus(d perfCount) perfCount {
	return perfCount{
		c.bytes - d.bytes, c.retransmits - d.retransmits, c.packets - d.packets, c.lost - d.lost,
		c.early - d.early,
	}
}

func (c perfCount) plus(d perfCount) perfCount {
	return perfCount{
		c.bytes + d.bytes, c.retransmits + d.retransmits, c.packets + d.packets, c.lost + d.lost,
		c.early + d.early,
	}
}

// perfPeaks are what reports have shown of a TCP sender, windows in bytes, round trips in
// microseconds.
type perfPeaks struct {
	cwnd, wnd, maxRTT, minRTT, sumRTT, n int64
}

// count is what the stream has come to by now.
func (s *perfStream) count(i *tcp.Info) perfCount {
	c := perfCount{bytes: s.moved.Load(), packets: s.packets.Load()}
	if i != nil {
		c.retransmits = int64(i.Retransmits)
	}
	if s.test.params.UDP && !s.sender {
		s.mu.Lock()
		c.packets, c.lost, c.early = int64(s.arrived.Highest), s.arrived.Lost, s.arrived.Early
		s.mu.Unlock()
	}
	return c
}

// jitter is UDP's, of a receiver.
func (s *perfStream) jitter() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived.Jitter
}

// info is what TCP tells of the stream's sender; nil: it is none.
func (s *perfStream) info() *tcp.Info {
	c, ok := s.carrier.(*perfBytes)
	if !ok || !s.sender || c.tcp == nil {
		return nil
	}
	i, err := c.tcp.Info()
	if err != nil {
		return nil
	}
	return &i
}

// run moves the stream's bytes.
func (s *perfStream) run() error {
	if s.sender {
		return s.carrier.send(s)
	}
	return s.carrier.receive(s)
}

// turn waits until the stream may send a block, and reports whether it shall.
func (s *perfStream) turn(pace *perf.Pace) bool {
	t := s.test
	for {
		if t.halted.Load() {
			return false
		}
		wait := pace.Wait(time.Since(t.began), s.moved.Load())
		if wait == 0 && t.reserve() {
			return true
		}
		if wait == 0 {
			wait = time.Hour // the others finish what they have taken
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-t.stop:
		}
		timer.Stop()
	}
}

// pace is how fast the stream may send.
func (s *perfStream) pace() *perf.Pace {
	p := &s.test.params
	return &perf.Pace{Rate: p.Bandwidth, Block: p.Len, Burst: p.Burst}
}

// took counts what has come, unless the test is over.
func (s *perfStream) took(n int) {
	t := s.test
	if t.halted.Load() {
		return
	}
	s.moved.Add(int64(n))
	t.moved(&t.gained, n)
}

// perfPayload is what is sent: random, so that nothing on the way can make it smaller.
func perfPayload(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(0x7ea1, uint64(n))) // the same every time: nobody looks at it
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// perfBytes carries a stream of bytes: TCP's or RCP's.
type perfBytes struct {
	conn interface {
		net.Conn
		Abort()
	}
	tcp *Conn // nil: it is RCP's
}

func (b *perfBytes) send(s *perfStream) error {
	block := perfPayload(s.test.params.Len)
	for pace := s.pace(); s.turn(pace); {
		n, err := b.conn.Write(block)
		s.moved.Add(int64(n))
		s.test.moved(&s.test.sent, n)
		switch {
		case err != nil && s.test.halted.Load():
			return nil
		case err != nil:
			return perfStreamError(err)
		}
	}
	return nil
}

func (b *perfBytes) receive(s *perfStream) error {
	buf := make([]byte, max(s.test.params.Len, 4<<10))
	for {
		n, err := b.conn.Read(buf)
		s.took(n)
		switch {
		case errors.Is(err, io.EOF), err != nil && s.test.halted.Load():
			return nil
		case err != nil:
			return perfStreamError(err)
		}
	}
}

func (b *perfBytes) halt()   { _ = b.conn.SetWriteDeadline(time.Unix(1, 0)) } // or it is closed
func (b *perfBytes) finish() { _ = b.conn.Close() }
func (b *perfBytes) close()  { b.conn.Abort() }

// perfStreamError is an error of a stream in a test's words.
func perfStreamError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return control.Reason(err)
}

// perfRCP is how RCP behaves where it is measured: what it has not sent yet is not worth much.
func perfRCP() RCPConfig {
	cfg := rcpConfig(control.RCPOptions{})
	cfg.SendBuffer = 64 << 10
	return cfg
}
