package workload

import (
	"fmt"
	"math"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// NotebookApp is a sender and its receiver.
type NotebookApp struct {
	sender   *sender
	receiver *receiver
}

// Attach makes a receiver on one host request the segments of a sender on another, at the address
// and UDP port at. Each sender needs its own strategy. The receiver belongs to the process. Errors:
// ErrNotebookConfig, and a port in use.
func (p *Process) Attach(
	from, to *sim.Host, at netip.AddrPort, strategy Strategy, cfg NotebookConfig,
) (*NotebookApp, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := strategy.State()
	if l.Cwnd < 1 || l.Ssthresh < 0 {
		return nil, fmt.Errorf("%w: cwnd %d must be at least 1, and ssthresh %d at least 0",
			ErrNotebookConfig, l.Cwnd, l.Ssthresh)
	}
	a := &NotebookApp{sender: newSender(&cfg, strategy), receiver: newReceiver(&cfg, p, at)}
	s, err := from.BindUDP(at.Port(), a.sender)
	if err != nil {
		return nil, err
	}
	s.SetReceiveBuffer(cfg.Buffer * datagramCharge)
	if _, err = to.BindUDP(0, a.receiver); err != nil {
		return nil, err
	}
	return a, nil
}

// Process returns the process of the receiver.
func (a *NotebookApp) Process() *Process { return a.receiver.process }

// Done reports whether the sender has run for its time, or has failed.
func (a *NotebookApp) Done() bool { return a.sender.over || a.receiver.tries > handshakeTries }

// Failed reports whether an exception of the strategy has ended the sender early.
func (a *NotebookApp) Failed() bool { return a.sender.strategy.State().Exception != "" }

// Result returns the current result of the sender.
func (a *NotebookApp) Result() NotebookResult {
	s, r := a.sender, a.receiver
	res := s.result
	if res.MaxRTT == 0 {
		res.MinRTT = 0
	}
	d := s.cfg.Duration
	if s.began == clock.Never {
		d = 0
	} else {
		res.Took = min(d, s.socket.Host().World().Now().Sub(s.began))
	}
	res.fill(s.strategy.State(), d)
	res.DeliveredBytes, res.Acks, res.Overflowed = r.peer.bytes, r.acks, r.overflowed
	switch exception := s.strategy.State().Exception; {
	case exception != "":
		res.Failure = fmt.Sprintf("the sender stopped after %v: %s", s.exceptionAt.Sub(s.began),
			exception)
	case s.over:
		res.Finished = true
	case r.tries > handshakeTries:
		res.Failure = "no handshake"
	case s.began == clock.Never:
		res.Failure = "not started"
	default:
		res.Failure = fmt.Sprintf("not finished: %v of %v", res.Took, s.cfg.Duration)
	}
	return res
}

// sender is the document's sender on a UDP socket: a loop that reads an acknowledgment if one has
// arrived, and sends a segment if the strategy has one.
type sender struct {
	cfg         *NotebookConfig
	strategy    Strategy
	socket      *sim.Socket
	peer        netip.AddrPort // receiver's address; invalid: no handshake yet
	began       clock.Time
	exceptionAt clock.Time
	idle        clock.Time // the sender is busy until then
	top         int        // number of different segments sent so far
	buf, out    []byte
	over        bool
	result      NotebookResult
}

func newSender(cfg *NotebookConfig, strategy Strategy) *sender {
	return &sender{
		cfg: cfg, strategy: strategy, buf: make([]byte, 1600),
		result: NotebookResult{MinRTT: math.MaxInt64, MaxCwnd: strategy.State().Cwnd},
	}
}

func (s *sender) Turn(now clock.Time, socket *sim.Socket) {
	s.socket = socket
	if !s.peer.IsValid() {
		s.answer(now)
	}
	end := s.began.Add(s.cfg.Duration)
	switch {
	case s.over || s.began == clock.Never:
		return
	case end.Due(now):
		s.over = true
		socket.Wake(clock.Never)
		return
	}
	for s.idle <= now && s.strategy.State().Exception == "" && s.poll(now) {
		s.idle = now.Add(s.cfg.SenderCost)
		if s.cfg.SenderCost > 0 {
			break
		}
	}
	socket.Wake(clock.Earliest(end, s.due(now)))
}

// due returns the time of the loop's next action without a datagram.
func (s *sender) due(now clock.Time) clock.Time {
	switch {
	case s.strategy.State().Exception != "":
		return clock.Never
	case s.idle > now:
		return s.idle
	}
	switch due := s.strategy.Due(); {
	case due == 0: // the host has no room, and will report when it has
		return clock.Never
	default:
		return virtual(due)
	}
}

// answer answers the receiver's handshake, which starts the run.
func (s *sender) answer(now clock.Time) {
	for {
		d, ok := s.socket.Receive(s.buf)
		if !ok {
			return
		}
		if m, err := parse(s.buf[:min(d.Len, len(s.buf))]); err != nil || !m.handshake {
			continue
		}
		s.peer, s.began = d.From, now
		s.send(append(s.out[:0], handshake...))
		return
	}
}

// poll is an iteration of the loop. It reports whether it did anything.
func (s *sender) poll(now clock.Time) (busy bool) {
	t := pythonTime(now)
	if d, ok := s.socket.Receive(s.buf); ok {
		busy = true
		s.take(now, t, s.buf[:min(d.Len, len(s.buf))])
	}
	if s.strategy.State().Exception != "" {
		s.exceptionAt = now
		return busy
	}
	if !s.socket.Roomy() {
		return busy
	}
	p, ok := s.strategy.NextPacket(t)
	if !ok {
		return busy
	}
	wire := packet{seq: p.Seq, sent: p.SentAt, bytes: -1}
	if p.Count {
		wire.bytes = s.strategy.State().SentBytes
	}
	s.out = wire.append(s.out[:0])
	s.result.Sent++
	if p.Seq < s.top {
		s.result.Again++
	}
	s.top = max(s.top, p.Seq+1)
	s.send(s.out)
	return true
}

func (s *sender) send(b []byte) { _ = s.socket.Send(s.peer, b) }

func (s *sender) take(now clock.Time, t float64, b []byte) {
	m, err := parse(b)
	if err != nil || !m.ack {
		return
	}
	s.strategy.ProcessAck(t, &Ack{Seq: m.seq, SentAt: m.sent, Bytes: m.bytes})
	l := s.strategy.State()
	r := &s.result
	r.MaxCwnd = max(r.MaxCwnd, l.Cwnd)
	rtt := seconds(l.LastRTT)
	if l.LastRTT > 0 {
		r.MinRTT, r.MaxRTT = min(r.MinRTT, rtt), max(r.MaxRTT, rtt)
	}
	if s.cfg.Record {
		r.Points = append(r.Points, Point{
			At: now.Sub(s.began), RTT: rtt, Cwnd: l.Cwnd, Ssthresh: l.Ssthresh,
		})
	}
}
