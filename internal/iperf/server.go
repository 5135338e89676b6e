package iperf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// server implements iperf3's protocol on a port, one test at a time.
type server struct {
	host     *Host
	req      control.PerfServe
	listener *node.Listener
	cancel   context.CancelFunc
	closed   chan struct{}  // closed when the port is free
	busy     sync.WaitGroup // waits for all of its goroutines

	mu       sync.Mutex
	tests    int
	greeting []*node.Conn // connections whose cookie has not arrived, the oldest first
	running  bool         // a test is in progress
	waiting  *pendingTest // the test that waits for its streams; nil: no test
}

// pendingTest is a test that waits for its streams.
type pendingTest struct {
	test     *test
	need     int
	arrived  []arrival
	complete chan struct{} // closed when all streams have arrived
}

// arrival is a stream with its position in the order of acceptance.
type arrival struct {
	order  int
	stream *stream
}

// serve opens a server. It serves until ctx ends, or in the background.
func (h *Host) serve(ctx context.Context, r control.PerfServe) (control.PerfServed, error) {
	r.Port = cmp.Or(r.Port, control.PerfPort)
	s := &server{host: h, req: r, closed: make(chan struct{})}
	if r.Background {
		ctx = context.Background()
		s.req.Listening, s.req.Start, s.req.Interval, s.req.Ended = nil, nil, nil, nil
	}
	l, err := h.node.TCP.Listen(h.node.AllAddrs(r.Port), 0)
	if err != nil {
		return control.PerfServed{}, fmt.Errorf("perf: unable to start listener on port %d: %w",
			r.Port, control.Reason(err))
	}
	s.listener = l
	ctx, s.cancel = context.WithCancel(ctx)
	h.enter(s)
	context.AfterFunc(ctx, func() {
		h.forget(s)
		_ = l.Close() // the node may have closed it already
		close(s.closed)
	})
	answer := s.describe()
	if r.Background {
		s.busy.Go(func() { s.accept(ctx) })
		return answer, nil
	}
	if r.Listening != nil {
		r.Listening(answer)
	}
	s.accept(ctx)
	s.busy.Wait()
	<-s.closed
	return s.describe(), nil
}

func (s *server) describe() control.PerfServed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return control.PerfServed{
		Local: s.host.node.AllAddrs(s.req.Port),
		Tests: s.tests, Busy: s.running,
	}
}

// accept accepts connections until the listener is closed. That ends the server.
func (s *server) accept(ctx context.Context) {
	defer s.cancel()
	for order := 0; ; order++ {
		c, err := s.listener.AcceptTCP()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.greeting = append(s.greeting, c)
		if len(s.greeting) > maxGreetings {
			s.greeting[0].Abort()
			s.greeting = s.greeting[1:]
		}
		s.mu.Unlock()
		s.busy.Go(func() { s.greet(ctx, c, order) })
	}
}

// greet reads the cookie of a connection. If a waiting test has this cookie, the connection is a
// stream of that test; otherwise it begins a test, unless one is running.
func (s *server) greet(ctx context.Context, c *node.Conn, order int) {
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	k := &wire{conn: c}
	var cookie Cookie
	err := k.read(cookie[:], greetingTime)
	if err == nil && !cookie.Valid() {
		err = fmt.Errorf("%w: the connection does not begin with a cookie", ErrMessage)
	}
	s.mu.Lock()
	n := len(s.greeting)
	s.greeting = slices.DeleteFunc(s.greeting, func(g *node.Conn) bool { return g == c })
	evicted := len(s.greeting) == n
	wait, mine := s.waiting, false
	switch {
	case err != nil:
	case wait != nil && wait.test.cookie == cookie:
		mine = wait.test.group.params.TCP && len(wait.arrived) < wait.need
		if mine {
			wait.add(order, wait.test.accepted(c))
		}
	case s.running:
		err = errBusy
	default:
		s.running = true
		s.tests++
		s.mu.Unlock()
		stop()
		s.run(ctx, k, cookie)
		return
	}
	s.mu.Unlock()
	if mine {
		return
	}
	if errors.Is(err, errBusy) {
		denied := AccessDenied
		_ = k.say(denied) // ignores the error, because the client may be gone
		_ = c.Close()
	} else {
		c.Abort()
	}
	if err != nil && !evicted {
		s.host.node.Watchers.Printf("perf %d: %v: %v", s.req.Port, c.Remote(), err)
	}
}

func (t *test) accepted(c *node.Conn) *stream {
	_ = c.SetReadDeadline(time.Time{}) // ignores the error, because the next read reports it
	return &stream{
		test: t, socket: c.SID(), transport: &byteTransport{conn: c, tcp: c}, local: c.Local(),
		remote: c.Remote(),
	}
}

// add adds a stream. The caller holds the server's lock.
func (w *pendingTest) add(order int, s *stream) {
	w.arrived = append(w.arrived, arrival{order, s})
	if len(w.arrived) == w.need {
		close(w.complete)
	}
}

// run runs a test on its control connection.
func (s *server) run(ctx context.Context, k *wire, cookie Cookie) {
	t := s.host.newTest(true)
	t.control, t.cookie, t.start, t.interval = k, cookie, s.req.Start, s.req.Interval
	t.report.Start.Cookie = cookie.String()
	err := t.run(ctx, func() error { return s.answer(ctx, t) }, t.conclude)
	s.mu.Lock()
	var strays []arrival
	if s.waiting != nil {
		strays, s.waiting = s.waiting.arrived, nil
	}
	s.mu.Unlock()
	t.close()
	for _, a := range strays {
		a.stream.transport.close()
	}
	k.drop()
	ended := control.PerfEnded{Port: s.req.Port, Report: t.report}
	if err != nil {
		ended.Problem = fmt.Sprintf("%v: %v", k.conn.Remote(), err)
		ended.Report.Error = err.Error()
	}
	s.mu.Lock()
	s.running = false
	s.mu.Unlock()
	if s.req.Ended != nil {
		s.req.Ended(ended)
	} else {
		s.host.node.Watchers.Announce(ended)
	}
	if s.req.OneOff {
		s.cancel()
	}
}

// answer runs the server's side of the protocol until the measurement begins.
func (s *server) answer(ctx context.Context, t *test) error {
	if err := t.control.say(ParamExchange); err != nil {
		return err
	}
	if err := t.receiveParams(); err != nil {
		return err
	}
	return s.acceptStreams(ctx, t)
}

func (c *wire) running() error {
	if err := c.say(TestStart); err != nil {
		return err
	}
	return c.say(TestRunning)
}

// conclude closes the streams and exchanges results with the client.
func (t *test) conclude() error {
	c := t.control
	for _, stream := range t.streams {
		stream.transport.finish()
	}
	if err := c.say(ExchangeResults); err != nil {
		return err
	}
	theirs, err := t.receiveResults()
	if err != nil {
		return err
	}
	t.finish(&theirs)
	if err := c.send(t.results()); err != nil {
		return err
	}
	if err := c.say(DisplayResults); err != nil {
		return err
	}
	if err := c.expect(Done); err != nil && !errors.Is(err, errGone) {
		return err
	}
	c.close()
	return nil
}

func (t *test) receiveParams() error {
	c := t.control
	text, err := c.receive(MaxParams)
	var p Params
	if err == nil {
		p, err = ParseParams(text)
	}
	if err != nil {
		if errors.Is(err, ErrMessage) {
			c.refuse(CodeParams)
		}
		return err
	}
	if p.Proto() == "TCP" {
		p.TCP = true
	}
	if p.Congestion != "" && p.TCP {
		if err := c.conn.SetCongestionControl(p.Congestion); err != nil {
			c.refuse(CodeCongestion)
			return control.Reason(err)
		}
	}
	t.agree(p)
	return nil
}

// acceptStreams opens the sockets for the streams, asks the client to connect, and waits until all
// streams have arrived. From then on it reads the client's states.
func (s *server) acceptStreams(ctx context.Context, t *test) error {
	sends, receives := t.group.params.StreamCounts()
	wait := &pendingTest{test: t, need: sends + receives, complete: make(chan struct{})}
	err := s.listen(t, wait)
	if err != nil {
		t.control.refuse(CodeCreateStream)
		return err
	}
	s.mu.Lock()
	s.waiting = wait
	s.mu.Unlock()
	if err := t.control.say(CreateStreams); err != nil {
		return err
	}
	t.control.listen() // reads the next state, or the loss of the client
	if t.group.params.RDT {
		return nil
	}
	select {
	case <-wait.complete:
	case <-ctx.Done():
		return errServerEnded
	case m := <-t.control.states:
		if m.err == nil {
			m.err = fmt.Errorf("%w: state %v while the server waits for streams", ErrMessage,
				m.state)
		}
		return m.err
	case <-time.After(patience):
		s.mu.Lock()
		n := len(wait.arrived)
		s.mu.Unlock()
		return fmt.Errorf("%w: only %d of %d streams connected", control.ErrTimeout, n, wait.need)
	}
	s.mu.Lock()
	s.waiting = nil
	s.mu.Unlock()
	slices.SortFunc(wait.arrived, func(a, b arrival) int { return cmp.Compare(a.order, b.order) })
	for i, a := range wait.arrived {
		a.stream.id, a.stream.sender = StreamID(i), i >= sends
		t.streams = append(t.streams, a.stream)
		if b, ok := a.stream.transport.(*byteTransport); ok {
			if err := t.tune(b.tcp); err != nil {
				return control.Reason(err)
			}
		}
		if !t.group.params.TCP {
			a.stream.socket = 5 + i // UDP streams share one socket, RCP streams use no socket
		}
	}
	return nil
}

// listen opens the sockets for streams of UDP, RCP or RDT.
func (s *server) listen(t *test, wait *pendingTest) error {
	on := s.host.node.AllAddrs(s.req.Port)
	var err error
	switch {
	case t.group.params.UDP:
		err = s.listenUDP(t, wait, on)
	case t.group.params.RCP:
		err = s.listenRCP(t, wait, on)
	case t.group.params.RDT:
		return t.acceptRDT(s.req.Port)
	}
	if err != nil {
		return fmt.Errorf("UDP port %d: %w", s.req.Port, control.Reason(err))
	}
	return nil
}

func (s *server) listenUDP(t *test, wait *pendingTest, on netip.AddrPort) error {
	c, err := s.host.node.Packets.Listen(on)
	if err != nil {
		return err
	}
	t.closers = append(t.closers, func() { _ = c.Close() })
	if err := t.tuneUDP(c); err != nil {
		return err
	}
	g := &udpDemux{
		test: t, conn: c, from: t.control.conn.Remote().Addr(),
		streams: map[netip.AddrPort]*stream{},
	}
	g.open = func(stream *stream) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting != wait || len(wait.arrived) == wait.need {
			return false
		}
		wait.add(len(wait.arrived), stream)
		return true
	}
	t.group.busy.Go(g.run)
	return nil
}

// listenRCP accepts RCP connections. The cookie identifies the test of each connection.
func (s *server) listenRCP(t *test, wait *pendingTest, on netip.AddrPort) error {
	l, err := s.host.node.RCP.Listen(on, 0, rcpConfig())
	if err != nil {
		return err
	}
	t.closers = append(t.closers, func() { _ = l.Close() })
	t.group.busy.Go(func() {
		for order := 0; ; order++ {
			c, err := l.AcceptRCP()
			if err != nil {
				return
			}
			t.group.busy.Go(func() { s.greetRCP(wait, c, order) })
		}
	})
	return nil
}

func (s *server) greetRCP(wait *pendingTest, c *node.RCPConn, order int) {
	var cookie Cookie
	err := c.SetReadDeadline(time.Now().Add(greetingTime))
	for n := 0; n < len(cookie) && err == nil; {
		var k int
		k, err = c.Read(cookie[n:])
		n += k
	}
	if err == nil {
		err = c.SetReadDeadline(time.Time{})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || cookie != wait.test.cookie || s.waiting != wait ||
		len(wait.arrived) == wait.need {
		c.Abort()
		return
	}
	wait.add(order, &stream{
		test: wait.test, transport: &byteTransport{conn: c}, local: c.Local(), remote: c.Remote(),
	})
}
