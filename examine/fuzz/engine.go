package fuzz

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// The ports of all sequences. The examiner uses the same in checks.
const (
	servicePort = 8080  // port on which the stack listens
	clientPort  = 40001 // port of the peer that connects to the stack
	peerPort    = 7070  // port of the peer to which the stack connects
)

// Trial is a stack that carries out one sequence.
type Trial interface {
	// Call carries out an event of any kind except Send and Wait.
	Call(e *Event) error
	// Send delivers a segment of the peer.
	Send(s *Segment) error
	// Pass lets the time of an event pass, and calls record with each segment from the stack.
	Pass(e *Event, record func(s *Segment)) error
	// Close ends the trial.
	Close()
}

// Stack starts trials.
type Stack interface {
	Name() string
	Start() (Trial, error)
}

// window is the size of the engine's buffers. Sequences are short.
const window = 1024

// Engine is our TCP engine without the stack around it, in virtual time.
type Engine struct{}

// Name implements Stack.
func (Engine) Name() string { return "engine" }

// engine is a trial of our TCP engine.
type engine struct {
	host    *tcp.Host
	now     clock.Time
	conn    *tcp.Conn
	tuple   tcp.Tuple
	reading bool
	train   tcp.Train
	room    [1]int
	payload [1][]byte
	buffer  [128]byte
}

var (
	engineAddr = netip.AddrFrom4([4]byte{10, 20, 0, 1})
	peerAddr   = netip.AddrFrom4([4]byte{10, 20, 0, 2})
)

// Start implements Stack.
func (Engine) Start() (Trial, error) {
	t := &engine{now: 1, tuple: tcp.Tuple{
		LocalAddr: engineAddr, RemoteAddr: peerAddr, LocalPort: servicePort,
		RemotePort: clientPort,
	}}
	path := tcp.Path{MTU: 1400, Local: engineAddr}
	var err error
	t.host, err = tcp.NewHost(tcp.Config{
		Knobs:   tcp.Knobs{NoDelay: true},
		Buffers: tcp.Buffers{Recv: window, RecvMax: window, Send: window, SendMax: window},
		Route:   func(netip.Addr) tcp.Path { return path },
	})
	return t, err
}

// Call implements Trial.
func (t *engine) Call(e *Event) error {
	switch e.Kind {
	case Listen:
		_, _ = t.host.Listen(t.tuple.Local(), 4) // the port is free, so this succeeds
	case Connect:
		t.tuple.RemotePort = peerPort
		// there are free ports, so this succeeds
		t.conn, _ = t.host.Connect(t.now, t.tuple.Remote(), 0)
		t.tuple.LocalPort = t.conn.Tuple().LocalPort
	case Write:
		_, _ = t.conn.Send(t.now, t.buffer[:e.Len]) // the comparison ignores the result
	case Read:
		t.reading = true
		t.read()
	case Shutdown:
		_ = t.conn.CloseWrite(t.now)
	case Close:
		t.conn.Close(t.now)
	case Wait, Send:
	}
	return nil
}

// read carries out the user's read once data has arrived.
func (t *engine) read() {
	if !t.reading {
		return
	}
	if n, err := t.conn.Receive(t.now, t.buffer[:]); n > 0 || err != nil {
		t.reading = false
	}
}

// Send implements Trial.
func (t *engine) Send(s *Segment) error {
	in := tcp.Segment{Tuple: t.tuple, Header: tcp.Header{
		Seq: s.Seq, Ack: s.Ack, Flags: s.Flags, Window: s.Win,
	}, Len: s.Len, Count: 1}
	if s.Flags.Has(tcp.SYN) {
		in.Options.MSS = peerMSS
	}
	if s.Len > 0 {
		t.payload[0] = t.buffer[:s.Len]
		in.Payload = t.payload[:]
	}
	t.host.Input(t.now, &in)
	return nil
}

// Pass implements Trial.
func (t *engine) Pass(e *Event, record func(s *Segment)) error {
	until := t.now.Add(Settle)
	if e.Kind == Wait {
		until = until.Add(longWait)
	}
	for {
		t.settle(record)
		due := t.host.Deadline()
		if due == clock.Never || due > until {
			t.now = until
			return nil
		}
		t.now = max(t.now, due)
		t.host.Advance(t.now)
	}
}

// settle collects the segments that the host sends now, and accepts connections.
func (t *engine) settle(record func(s *Segment)) {
	for again := true; again; {
		again = false
		t.room[0] = 1 << 10
		for t.host.Output(t.now, t.room[:], &t.train) {
			again = true
			h := &t.train.Header
			record(&Segment{h.Flags, h.Seq, h.Ack, h.Window, t.train.Len})
		}
		for {
			_, l, _, ok := t.host.NextEvent()
			if !ok {
				break
			}
			if again = true; l == nil {
				t.read()
				continue
			}
			if c, ok := l.Accept(); ok {
				t.conn = c
			}
		}
	}
}

// state returns the connection's state.
func (t *engine) state() tcp.State {
	for c := range t.host.HalfOpen() {
		return c.State()
	}
	if t.conn == nil || t.conn.State() == tcp.StateClosed {
		if t.tuple.RemotePort == clientPort && t.host.Accepts(t.tuple.Local()) {
			return tcp.StateListen
		}
		return tcp.StateClosed
	}
	return t.conn.State()
}

// Close implements Trial.
func (*engine) Close() {}
