//go:build linux

package end

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// chunk is the size of an application's reads and writes, in bytes.
const chunk = 256 << 10

// period is the length of the repeating pattern, in bytes.
const period = 1 << 20

// pattern is the data that senders send. Every eight bytes encode their position, so the receiver
// notices missing and duplicated bytes. The slice is one period and one chunk long.
var pattern = func() []byte {
	b := make([]byte, period+chunk)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(i%period+1)*0x9e3779b97f4a7c15)
	}
	return b
}()

// wrong compares both ends of b, which was read at an offset of the stream, with the pattern, and
// returns how many of those bytes differ. Its cost does not depend on b's length.
func wrong(b []byte, offset int64) (bad int64) {
	for i, c := range b[:min(64, len(b))] {
		if c != pattern[(offset+int64(i))%period] {
			bad++
		}
	}
	tail := max(0, len(b)-64)
	for i, c := range b[tail:] {
		if c != pattern[(offset+int64(tail+i))%period] {
			bad++
		}
	}
	return bad
}

// halfCloser is implemented by the connections of all stacks.
type halfCloser interface{ CloseWrite() error }

// meter counts the bytes of a time span, after a warm-up.
type meter struct {
	warm, span      time.Duration
	began           time.Time // zero: no byte has arrived yet
	from            time.Time // zero: the warm-up is not over
	bytes, all      int64
	cpuFrom         time.Duration
	over            bool
	took, cpuWithin time.Duration
}

// add counts n bytes and reports whether the span has ended.
func (m *meter) add(n int) bool {
	m.all += int64(n)
	now := time.Now()
	switch {
	case m.over:
	case m.began.IsZero():
		m.began = now
	case m.from.IsZero():
		if now.Sub(m.began) >= m.warm {
			m.from = now
			m.cpuFrom, _ = cpu()
		}
	default:
		m.bytes += int64(n)
		m.took = now.Sub(m.from)
		if m.took >= m.span {
			m.end()
			return true
		}
	}
	return false
}

func (m *meter) end() {
	m.over = true
	all, _ := cpu()
	m.cpuWithin = all - m.cpuFrom
}

func (m *meter) report(event string) *Report {
	return &Report{Event: event, Bytes: m.bytes, Took: m.took, Usage: Usage{CPU: m.cpuWithin}}
}

// bulk sends until the time is over, then waits until the receiver has everything.
func (p *process) bulk() (s Report, err error) {
	c, err := p.dial(bulkPort)
	if err != nil {
		return s, err
	}
	defer func() { _ = c.Close() }() // at this point awaitCount has waited for all data
	w := p.spec.Work
	var head [16]byte
	binary.BigEndian.PutUint64(head[:], uint64(w.Warm))
	binary.BigEndian.PutUint64(head[8:], uint64(w.For))
	if _, err := c.Write(head[:]); err != nil {
		return s, err
	}
	looks := p.samplePath(c)
	m := meter{warm: w.Warm, span: w.For}
	if err := c.SetWriteDeadline(time.Now().Add(w.Warm + w.For + time.Second)); err != nil {
		return s, err
	}
	for over := false; !over; {
		at := m.all % period
		n, err := c.Write(pattern[at : at+chunk])
		over = m.add(n)
		if late(err) {
			m.end() // a transfer so slow that a chunk takes more than a second
			break
		}
		if err != nil {
			return s, err
		}
	}
	path := looks()
	s = *m.report("")
	s.Path = path
	s.Whole, err = awaitCount(c, m.all, w.Grace)
	p.host.Describe(c, &s.Path)
	s.RTT = path.RTT
	return s, err
}

// awaitCount ends the stream and waits for the receiver's count. It reports whether all bytes have
// arrived.
func awaitCount(c net.Conn, sent int64, grace time.Duration) (bool, error) {
	if err := c.(halfCloser).CloseWrite(); err != nil {
		return false, err
	}
	if err := c.SetReadDeadline(time.Now().Add(grace)); err != nil {
		return false, err
	}
	var count [8]byte
	if _, err := io.ReadFull(c, count[:]); err != nil {
		if late(err) {
			return false, nil // a lossy path may need more time; the lead ends the run
		}
		return false, fmt.Errorf("waiting for the receiver's count: %w", err)
	}
	if got := int64(binary.BigEndian.Uint64(count[:])); got != sent {
		return false, fmt.Errorf("sent %d bytes, the receiver has %d", sent, got)
	}
	return true, nil
}

// receive is the receiving end of bulk.
func (p *process) receive(c net.Conn) error {
	var head [16]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	m := meter{
		warm: time.Duration(binary.BigEndian.Uint64(head[:])),
		span: time.Duration(binary.BigEndian.Uint64(head[8:])),
	}
	buf := make([]byte, chunk)
	var bad int64
	for {
		n, err := c.Read(buf)
		bad += wrong(buf[:n], m.all)
		if m.add(n) {
			p.report(m.report("window"))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if !m.over {
		m.end()
		p.report(m.report("window"))
	}
	p.report(&Report{Event: "end", Bytes: m.all, Bad: bad})
	if bad > 0 {
		return fmt.Errorf("%d received bytes differ from the pattern", bad)
	}
	_, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(m.all)))
	return err
}

// samplePath samples a connection's round-trip time until the returned function is called, which
// returns the mean.
func (p *process) samplePath(c net.Conn) func() Path {
	over, result := make(chan bool), make(chan Path)
	go func() {
		var sum time.Duration
		var count time.Duration
		every := time.NewTicker(20 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				var now Path
				p.host.Describe(c, &now)
				if now.RTT > 0 {
					sum += now.RTT
					count++
				}
			case <-over:
				result <- Path{RTT: sum / max(1, count)}
				return
			}
		}
	}()
	return func() Path {
		close(over)
		return <-result
	}
}
