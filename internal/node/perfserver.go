package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/perf"
)

// perfServer answers iperf3's protocol on a port, one test at a time.
type perfServer struct {
	node     *Node
	req      control.PerfServe
	listener *Listener
	cancel   context.CancelFunc
	busy     sync.WaitGroup // all of its goroutines

	mu        sync.Mutex
	tests     int
	greetings int       // connections that have not said yet what they are
	running   bool      // there is a test
	waiting   *perfWait // for streams; nil: it is not
}

// perfWait is a test that waits for its streams.
type perfWait struct {
	test  *perfTest
	need  int
	came  []perfArrival
	whole chan struct{} // closed when all are there
}

// perfArrival is a stream, with its place among those that were accepted.
type perfArrival struct {
	order  int
	stream *perfStream
}

// perfServe opens a server. It goes on until ctx ends, or in the background.
func (n *Node) perfServe(
	ctx context.Context, r *control.PerfServe,
) (control.PerfServed, error) {
	if r.Port == 0 {
		r.Port = control.PerfPort
	}
	s := &perfServer{node: n, req: *r}
	if r.Background {
		ctx = context.Background()
		s.req.Listening, s.req.Start, s.req.Interval, s.req.Ended = nil, nil, nil, nil
	}
	ctx, s.cancel = context.WithCancel(ctx)
	l, err := n.listenOn(&Listener{
		addr: netip.AddrPortFrom(netip.IPv4Unspecified(), r.Port), server: s,
	}, 0)
	if err != nil {
		s.cancel()
		return control.PerfServed{}, fmt.Errorf("perf: unable to start listener on port %d: %w",
			r.Port, control.Reason(err))
	}
	s.listener = l
	context.AfterFunc(ctx, func() { _ = l.Close() }) // it may be closed
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
	_ = n.call(func(clock.Time) {}) // behind the listener's end: the port is free
	return s.describe(), nil
}

// describe is what operators see.
func (s *perfServer) describe() control.PerfServed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return control.PerfServed{
		Local: netip.AddrPortFrom(netip.IPv4Unspecified(), s.req.Port),
		Tests: s.tests, Busy: s.running,
	}
}

// perfServers are the node's servers.
func (n *Node) perfServers() (list []*perfServer, err error) {
	err = n.call(func(clock.Time) {
		for _, l := range n.listeners {
			if s, ok := l.server.(*perfServer); ok && !l.closing.Load() {
				list = append(list, s)
			}
		}
	})
	slices.SortFunc(list, func(a, b *perfServer) int { return cmp.Compare(a.req.Port, b.req.Port) })
	return list, controlError(err)
}

// perfRequest carries out the requests about iperf3's protocol.
func (n *Node) perfRequest(ctx context.Context, req any) (any, error) {
	switch r := req.(type) {
	case control.Perf:
		return n.perfClient(ctx, &r)
	case control.PerfServe:
		return n.perfServe(ctx, &r)
	case control.PerfClose:
		return control.Nothing{}, n.perfClose(r)
	}
	servers, err := n.perfServers()
	list := []control.PerfServed{}
	for _, s := range servers {
		list = append(list, s.describe())
	}
	return list, err
}

// perfClose ends a server.
func (n *Node) perfClose(r control.PerfClose) error {
	if r.Port == 0 {
		r.Port = control.PerfPort
	}
	servers, err := n.perfServers()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.req.Port == r.Port {
			s.cancel()
			_ = s.listener.Close()                           // it may be closed
			return controlError(n.call(func(clock.Time) {})) // so that the port is free
		}
	}
	return fmt.Errorf("perf: port %d: %w", r.Port, control.ErrNoSuchSocket)
}

// accept takes connections until the listener is closed, which ends the server.
func (s *perfServer) accept(ctx context.Context) {
	defer s.cancel()
	for order := 0; ; order++ {
		c, err := s.listener.AcceptTCP()
		if err != nil {
			return
		}
		s.mu.Lock()
		full := s.greetings >= maxPerfGreetings
		if !full {
			s.greetings++
		}
		s.mu.Unlock()
		if full {
			c.Abort()
			continue
		}
		s.busy.Go(func() { s.greet(ctx, c, order) })
	}
}

// greet finds out what a connection is: a stream of the test that waits for some, or a test.
func (s *perfServer) greet(ctx context.Context, c *Conn, order int) {
	stop := context.AfterFunc(ctx, c.Abort)
	defer stop()
	k := &perfControl{conn: c}
	var cookie perf.Cookie
	err := k.read(cookie[:], perfGreeting)
	if err == nil && !cookie.Valid() {
		err = fmt.Errorf("%w: it begins with no cookie", perf.ErrMessage)
	}
	s.mu.Lock()
	s.greetings--
	wait, mine := s.waiting, false
	switch {
	case err != nil:
	case wait != nil && wait.test.cookie == cookie:
		mine = wait.test.params.TCP && len(wait.came) < wait.need
		if mine {
			wait.add(order, wait.test.accepted(c))
		}
	case s.running:
		err = errPerfBusy
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
	if errors.Is(err, errPerfBusy) {
		denied := perf.AccessDenied
		_ = k.say(denied) // who has gone needs no answer
		_ = c.Close()
	} else {
		c.Abort()
	}
	if err != nil {
		s.node.say("perf %d: %v: %v", s.req.Port, c.peer(), err)
	}
}

// accepted makes a stream of a connection.
func (t *perfTest) accepted(c *Conn) *perfStream {
	_ = c.SetReadDeadline(time.Time{}) // or it is closed, and its reader will see
	return &perfStream{
		test: t, socket: c.sid, carrier: &perfBytes{conn: c, tcp: c}, local: c.local(),
		remote: c.peer(),
	}
}

// add takes a stream. The server's lock is held.
func (w *perfWait) add(order int, s *perfStream) {
	w.came = append(w.came, perfArrival{order, s})
	if len(w.came) == w.need {
		close(w.whole)
	}
}

// run is a test, from its control connection on.
func (s *perfServer) run(ctx context.Context, k *perfControl, cookie perf.Cookie) {
	t := s.node.newPerfTest(true)
	t.control, t.cookie, t.start, t.interval = k, cookie, s.req.Start, s.req.Interval
	t.report.Start.Cookie = cookie.String()
	err := s.answer(ctx, t)
	s.mu.Lock()
	var strays []perfArrival
	if s.waiting != nil {
		strays, s.waiting = s.waiting.came, nil
	}
	s.mu.Unlock()
	t.close()
	for _, a := range strays {
		a.stream.carrier.close()
	}
	k.drop()
	ended := control.PerfEnded{Port: s.req.Port, Report: t.report}
	if err != nil {
		ended.Problem = fmt.Sprintf("%v: %v", k.conn.peer(), err)
		ended.Report.Error = err.Error()
	}
	s.mu.Lock()
	s.running = false
	s.mu.Unlock()
	if s.req.Ended != nil {
		s.req.Ended(ended)
	} else {
		s.node.watchers.publish(ended)
	}
	if s.req.OneOff {
		s.cancel()
	}
}

// answer goes through the protocol as its server.
func (s *perfServer) answer(ctx context.Context, t *perfTest) error {
	c := t.control
	stop := context.AfterFunc(ctx, c.conn.Abort)
	defer func() { stop() }()
	c.conn.Guard()
	if err := c.say(perf.ParamExchange); err != nil {
		return err
	}
	if err := t.learn(); err != nil {
		return err
	}
	if err := s.gather(ctx, t); err != nil {
		return err
	}
	for _, state := range []perf.State{perf.TestStart, perf.TestRunning} {
		if err := c.say(state); err != nil {
			return err
		}
	}
	t.begin()
	stop()
	err := t.measure(ctx)
	t.halt()
	if err != nil {
		if ctx.Err() != nil {
			err = errPerfServerEnded
			c.part(perf.ServerTerminate)
		}
		t.finish(&perf.Results{})
		return err
	}
	stop = context.AfterFunc(ctx, c.conn.Abort)
	for _, stream := range t.streams {
		stream.carrier.finish()
	}
	return t.conclude()
}

// conclude exchanges results with the client.
func (t *perfTest) conclude() error {
	c := t.control
	if err := c.say(perf.ExchangeResults); err != nil {
		return err
	}
	text, err := c.receive(perf.MaxResults)
	if err != nil {
		return err
	}
	theirs, err := perf.ParseResults(text, len(t.streams))
	if err != nil {
		return err
	}
	t.finish(&theirs)
	if err := c.send(t.results()); err != nil {
		return err
	}
	if err := c.say(perf.DisplayResults); err != nil {
		return err
	}
	if err := c.expect(perf.Done); err != nil && !errors.Is(err, errPerfGone) {
		return err
	}
	_ = c.conn.Close() // nothing of ours is under way
	return nil
}

// learn reads what is to be measured.
func (t *perfTest) learn() error {
	c := t.control
	text, err := c.receive(perf.MaxParams)
	var p perf.Params
	if err == nil {
		p, err = perf.ParseParams(text)
	}
	if err != nil {
		if errors.Is(err, perf.ErrMessage) {
			c.refuse(perf.CodeParams)
		}
		return err
	}
	if p.Proto() == "TCP" {
		p.TCP = true
	}
	if p.Congestion != "" && p.TCP {
		if err := c.conn.SetCongestionControl(p.Congestion); err != nil {
			c.refuse(perf.CodeCongestion)
			return control.Reason(err)
		}
	}
	t.agree(p)
	return nil
}

// gather opens what the streams come to, asks for them, and waits until all are there. From then
// on it listens to what the client says.
func (s *perfServer) gather(ctx context.Context, t *perfTest) error {
	sends, receives := t.params.Ways()
	wait := &perfWait{test: t, need: sends + receives, whole: make(chan struct{})}
	err := s.door(t, wait)
	if err != nil {
		t.control.refuse(perf.CodeCreateStream)
		return err
	}
	s.mu.Lock()
	s.waiting = wait
	s.mu.Unlock()
	if err := t.control.say(perf.CreateStreams); err != nil {
		return err
	}
	t.control.listen() // a client that is gone keeps nobody waiting
	if t.params.RDT {
		return nil
	}
	timer := time.NewTimer(perfPatience)
	defer timer.Stop()
	select {
	case <-wait.whole:
	case <-ctx.Done():
		return errPerfServerEnded
	case m := <-t.control.heard:
		if m.err == nil {
			m.err = fmt.Errorf("%w: %v where streams are due", perf.ErrMessage, m.state)
		}
		return m.err
	case <-timer.C:
		s.mu.Lock()
		n := len(wait.came)
		s.mu.Unlock()
		return fmt.Errorf("%w: %d of %d streams came", control.ErrTimeout, n, wait.need)
	}
	s.mu.Lock()
	s.waiting = nil
	s.mu.Unlock()
	slices.SortFunc(wait.came, func(a, b perfArrival) int { return cmp.Compare(a.order, b.order) })
	for i, a := range wait.came {
		a.stream.id, a.stream.sender = perf.StreamID(i), i >= sends
		t.streams = append(t.streams, a.stream)
		if b, ok := a.stream.carrier.(*perfBytes); ok {
			if err := t.tune(b.tcp); err != nil {
				return control.Reason(err)
			}
		}
		if !t.params.TCP {
			a.stream.socket = 5 + i // they share one, or have none
		}
	}
	return nil
}

// door opens what streams of other protocols than TCP come to.
func (s *perfServer) door(t *perfTest, wait *perfWait) error {
	on := netip.AddrPortFrom(netip.IPv4Unspecified(), s.req.Port)
	var err error
	switch {
	case t.params.UDP:
		err = s.doorUDP(t, wait, on)
	case t.params.RCP:
		err = s.doorRCP(t, wait, on)
	case t.params.RDT:
		return t.acceptRDT(s.req.Port)
	}
	if err != nil {
		return fmt.Errorf("UDP port %d: %w", s.req.Port, control.Reason(err))
	}
	return nil
}

func (s *perfServer) doorUDP(t *perfTest, wait *perfWait, on netip.AddrPort) error {
	c, err := s.node.ListenPacket(on)
	if err != nil {
		return err
	}
	t.closers = append(t.closers, func() { _ = c.Close() })
	if err := t.tuneUDP(c); err != nil {
		return err
	}
	g := &perfGate{
		test: t, conn: c, from: t.control.conn.peer().Addr(),
		streams: map[netip.AddrPort]*perfStream{},
	}
	g.open = func(stream *perfStream) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting != wait || len(wait.came) == wait.need {
			return false
		}
		wait.add(len(wait.came), stream)
		return true
	}
	t.busy.Go(g.run)
	return nil
}

// doorRCP takes connections of RCP: each says by the cookie whose it is.
func (s *perfServer) doorRCP(t *perfTest, wait *perfWait, on netip.AddrPort) error {
	l, err := s.node.ListenRCP(on, 0, perfRCP())
	if err != nil {
		return err
	}
	t.closers = append(t.closers, func() { _ = l.Close() })
	t.busy.Go(func() {
		for order := 0; ; order++ {
			c, err := l.AcceptRCP()
			if err != nil {
				return
			}
			t.busy.Go(func() { s.greetRCP(wait, c, order) })
		}
	})
	return nil
}

func (s *perfServer) greetRCP(wait *perfWait, c *RCPConn, order int) {
	var cookie perf.Cookie
	err := c.SetReadDeadline(time.Now().Add(perfGreeting))
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
		len(wait.came) == wait.need {
		c.Abort()
		return
	}
	wait.add(order, &perfStream{
		test: wait.test, carrier: &perfBytes{conn: c}, local: c.local(), remote: c.peer(),
	})
}
