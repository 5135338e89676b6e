package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// deviations are the ways in which course nodes deviate from the RFC, as captures show.
type deviations struct {
	finWithoutACK bool // the FIN has no ACK flag
	bareFINs      int  // how often the peer retransmits its FIN, even after an answer
	ackStorm      int  // number of empty ACKs that the peer sends when it closes
	synWindow     uint16
	dropsOptions  bool // silently drops every segment with options
	mss           int
}

// plainPeer is a small TCP like a course node's: no options, one ACK per segment, go-back-N with a
// fixed timeout, a window of 65535, and no resets.
type plainPeer struct {
	m                       deviations
	out                     []Segment // segments sent by the peer
	iss, sndUna, sndNxt     uint32
	rcvNxt                  uint32
	open, finSent, finAcked bool
	peerDone                bool
	tx, rx                  []byte // data to send, data received
	sentAt                  clock.Time
	window                  int
	sent                    int
}

func newPlainPeer(m deviations) *plainPeer {
	if m.mss == 0 {
		m.mss = 1024
	}
	return &plainPeer{m: m, iss: 785, sndUna: 785, sndNxt: 785}
}

func (p *plainPeer) send(flags Flags, seq uint32, text []byte) {
	w := uint16(65535)
	if flags.Has(SYN) {
		w = p.m.synWindow
	}
	p.out = append(p.out, Segment{
		Header: Header{Seq: seq, Ack: p.rcvNxt, Flags: flags, Window: w},
		Len:    len(text), Count: 1, Payload: [][]byte{text},
	})
	p.sent++
}

// input takes one encoded segment.
func (p *plainPeer) input(now clock.Time, h Header, text []byte) {
	if p.m.dropsOptions && h.Options != (Options{}) || h.Flags.Has(RST) {
		return
	}
	if h.Flags.Has(SYN) {
		p.rcvNxt = h.Seq + 1
		if h.Flags.Has(ACK) && h.Ack == p.iss+1 {
			p.sndUna, p.sndNxt, p.open = p.iss+1, p.iss+1, true
			p.send(ACK, p.sndNxt, nil)
		} else if !p.open {
			p.sndNxt = p.iss + 1
			p.send(SYN|ACK, p.iss, nil)
		}
		return
	}
	if h.Flags.Has(ACK) && after(h.Ack, p.sndUna) && !after(h.Ack, p.sndNxt) {
		if !p.open {
			p.open = true
			p.sndUna = p.iss + 1
		}
		n := min(int(h.Ack-p.sndUna), len(p.tx))
		p.tx = p.tx[n:]
		p.finAcked = p.finSent && h.Ack == p.sndNxt
		p.sndUna = h.Ack
		p.sentAt = now
	}
	p.window = int(h.Window)
	if h.Seq == p.rcvNxt {
		p.rx = append(p.rx, text...)
		p.rcvNxt += uint32(len(text))
		if h.Flags.Has(FIN) {
			p.rcvNxt++
			p.peerDone = true
		}
	}
	if len(text) > 0 || h.Flags.Has(FIN) {
		p.send(ACK, p.sndNxt, nil)
	}
}

// act sends the data that the window allows. After 20 ms it retransmits all of it.
func (p *plainPeer) act(now clock.Time) {
	if !p.open {
		return
	}
	if p.sndNxt != p.sndUna && now.Sub(p.sentAt) > 20*time.Millisecond {
		p.sndNxt = p.sndUna
		p.finSent = p.finSent && p.finAcked
	}
	for {
		off := int(p.sndNxt - p.sndUna)
		n := min(len(p.tx)-off, p.m.mss, p.window-off)
		if n <= 0 || p.finSent {
			break
		}
		p.send(ACK, p.sndNxt, append([]byte(nil), p.tx[off:off+n]...))
		p.sndNxt += uint32(n)
		p.sentAt = now
	}
	if len(p.tx) == 0 && !p.finSent && p.sndUna == p.sndNxt {
		p.finSent, p.sentAt = true, now
		flags := FIN | ACK
		if p.m.finWithoutACK {
			flags = FIN
		}
		for range 1 + p.m.bareFINs {
			p.send(flags, p.sndNxt, nil)
		}
		p.sndNxt++
		for range p.m.ackStorm {
			p.send(ACK, p.sndNxt, nil)
		}
	}
}

// TestCourseNodes moves a file in both directions between a host and each kind of peer over a lossy
// link, and checks that both sides close.
func TestCourseNodes(t *testing.T) {
	for name, m := range map[string]deviations{
		"clean":             {synWindow: 65535},
		"FIN without ACK":   {synWindow: 65535, finWithoutACK: true, ackStorm: 60000},
		"repeated FINs":     {synWindow: 65535, finWithoutACK: true, bareFINs: 2400, mss: 1024},
		"SYN window 0":      {synWindow: 0},
		"drops options":     {synWindow: 65535, dropsOptions: true, mss: 1360},
		"large FIN repeats": {synWindow: 65535, bareFINs: 2400},
	} {
		for _, active := range []bool{true, false} {
			for seed := range uint64(3) {
				transferWithCourseNode(t, name, m, active, seed)
			}
		}
	}
}

func transferWithCourseNode(t *testing.T, name string, m deviations, active bool, seed uint64) {
	t.Helper()
	const size = 200000
	s := newScript(t, course())
	s.iss = 4242
	p := newPlainPeer(m)
	p.tx = make([]byte, size)
	fill(p.tx, 0)
	if active {
		s.connect()
	} else {
		s.listen(1)
		p.window = 65535
		p.send(SYN, p.iss, nil)
		p.sndNxt++
	}
	rng := newWorld(t, seed, wire{}, course()).rng
	loss := []float64{0, 0.02, 0.1}[seed%3]
	written, read := 0, 0
	answers := 0
	wrote, b := make([]byte, 3000), make([]byte, size)
	for step := 0; ; step++ {
		require.Less(t, step, 400000, "%s, active %v, seed %d: %+v\npeer %+v", name,
			active, seed, s.h, p.m)
		s.now = s.now.Add(50 * time.Microsecond)
		if s.h.Deadline().Due(s.now) {
			s.h.Advance(s.now)
		}
		// Deliver the segments of both directions, in order and with loss.
		for s.h.Output(s.now, []int{1000}, &s.train) {
			tr := &s.train
			answers++
			for i := range tr.Segments() {
				h := tr.Header
				h.Seq += uint32(i * tr.MSS)
				if i < tr.Segments()-1 {
					h.Flags &^= PSH | FIN
				}
				var text []byte
				for _, b := range tr.Payload {
					text = append(text, b...)
				}
				text = text[i*tr.MSS : min((i+1)*tr.MSS, tr.Len)]
				if rng.Float64() >= loss {
					p.input(s.now, h, text)
				}
			}
		}
		if !active && !p.open && step%100 == 0 {
			p.send(SYN, p.iss, nil)
		}
		p.act(s.now)
		out := p.out
		p.out = nil
		for i := range out {
			out[i].Tuple = s.tuple
			if rng.Float64() >= loss {
				s.h.Input(s.now, &out[i])
			}
		}
		if s.c == nil {
			if c, ok := s.l.Accept(); ok {
				s.c = c
			}
			continue
		}
		c := s.c
		if written < size {
			w := wrote[:min(len(wrote), size-written)]
			fill(w, uint64(written))
			written += c.Tx().Write(w)
			c.Wrote(s.now)
		} else if c.ReadDone() {
			_ = c.CloseWrite(s.now)
		}
		n := c.Rx().Read(b[:4000])
		if st := c.State(); st == StateClosed || st == StateTimeWait {
			n += c.Rx().Read(b[n:])
		}
		require.NoError(t, check(b[:n], uint64(read)))
		read += n
		if n > 0 {
			c.Consumed(s.now)
		}
		if st := c.State(); st == StateClosed || st == StateTimeWait {
			break
		}
	}
	require.NoError(t, s.c.Err(), name)
	assert.Equal(t, size, read, name)
	require.Len(t, p.rx, size, name)
	require.NoError(t, check(p.rx, 0), name)
	assert.Less(t, answers, 8000, "%s: a storm must not be answered with a storm", name)
}

// TestSilentPeer checks that connecting and sending time out if the peer never answers. The course
// nodes send no resets.
func TestSilentPeer(t *testing.T) {
	s := newScript(t, course())
	s.connect()
	s.wait(10 * time.Minute)
	require.ErrorIs(t, s.c.Err(), ErrTimeout)
	s = opened(t, course())
	s.write(100000)
	s.wait(10 * time.Minute)
	require.ErrorIs(t, s.c.Err(), ErrTimeout)
	assert.Equal(t, uint64(0), s.c.Info().BytesAcked)
}
