package iperf

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// test is one end of a test. The goroutine of its control connection owns it, except for its group.
type test struct {
	group   group
	host    *Host
	server  bool
	control *wire
	cookie  Cookie
	streams []*stream
	every   time.Duration // interval of reports; negative: no reports

	report     control.PerfReport
	start      func(control.PerfStart)    // called when the test starts; may be nil
	interval   func(control.PerfInterval) // called for each interval; may be nil
	from       time.Time                  // when counting began
	reportedAt time.Time                  // when the last interval was reported
	until      time.Time                  // end of the measurement
	used       cpuTime                    // CPU time at the start, and later the difference
	closers    []func()                   // called by close
	offers     []*rdtTransport            // objects that a client offers when it sends by RDT
	// lag separates goroutines that would otherwise act at the same instant of a Clock.
	lag time.Duration
}

// group is the state that the streams of a test share.
type group struct {
	params   Params
	began    time.Time
	halted   atomic.Bool
	stop     chan struct{} // closed by halt
	broken   chan error    // errors of streams; the channel has room for all of them
	busy     sync.WaitGroup
	counting atomic.Bool // set when the omitted time is over

	limit      int64        // bytes after which the test ends; 0: no limit
	unreserved atomic.Int64 // part of limit that no sender has reserved
	sent       atomic.Int64 // bytes that senders sent while counting
	received   atomic.Int64 // bytes that receivers received while counting
	once       sync.Once    // makes halt close stop only once
	enough     chan struct{}
}

func (h *Host) newTest(server bool) *test {
	t := &test{host: h, server: server, every: time.Second}
	if h.node.Time.Driven() {
		t.lag = 1
	}
	t.group.stop, t.group.enough = make(chan struct{}), make(chan struct{})
	t.report.Intervals = []control.PerfInterval{}
	t.report.Start.Connected = []control.PerfConnected{}
	t.report.End.Streams = []control.PerfStreamEnd{}
	return t
}

func (t *test) agree(p Params) {
	t.group.params = p
	limit := p.Num
	if p.Blocks > 0 {
		limit = min(p.Blocks, math.MaxInt64/int64(p.Len)) * int64(p.Len)
	}
	if !t.server { // only the client decides when the test ends
		t.group.limit = limit
		t.group.unreserved.Store(limit)
	}
}

// reserve takes a block from the bytes that are left to send, and reports whether one was left.
func (g *group) reserve() bool {
	if g.limit == 0 || !g.counting.Load() {
		return true
	}
	block := int64(g.params.Len)
	return g.unreserved.Add(-block)+block > 0
}

// moved adds n to a total, and ends the test when the total reaches the requested amount.
func (g *group) moved(total *atomic.Int64, n int) {
	if g.counting.Load() && total.Add(int64(n)) >= g.limit && g.limit > 0 {
		g.satisfy()
	}
}

func (g *group) satisfy() { g.once.Do(func() { close(g.enough) }) }

// run runs a test at either end, with the messages before and after the measurement. If ctx ends
// during the measurement, run sends the other end a last state. If it ends before or after, run
// aborts the control connection, so that the other end does not wait.
func (t *test) run(ctx context.Context, before, after func() error) error {
	c := t.control
	stop := context.AfterFunc(ctx, c.conn.Abort)
	defer func() { stop() }()
	c.conn.Guard()
	if err := before(); err != nil {
		return err
	}
	stop()
	if t.server {
		if err := c.running(); err != nil {
			return err
		}
	}
	t.begin()
	err := t.measure(ctx)
	t.halt()
	if err == nil {
		stop = context.AfterFunc(ctx, c.conn.Abort)
		return after()
	}
	t.finish(&Results{})
	switch {
	case ctx.Err() == nil:
	case t.server:
		err = errServerEnded
		c.terminate(ServerTerminate)
	default:
		c.terminate(ClientTerminate)
	}
	return err
}

// receiveResults receives the other end's results.
func (t *test) receiveResults() (Results, error) {
	text, err := t.control.receive(MaxResults)
	if err != nil {
		return Results{}, err
	}
	return ParseResults(text, len(t.streams))
}

// measure runs the streams until the test ends. It returns nil if the test ended normally. On a
// Clock, no two of its timers and streams act at the same instant, because their order would then
// be random.
func (t *test) measure(ctx context.Context) error {
	t.open()
	own := t.lag * time.Duration(len(t.streams)+1) // after the instants of the streams
	time.Sleep(own)
	omitted := time.NewTimer(t.group.params.OmitTime() + t.lag)
	defer omitted.Stop()
	over := time.NewTimer(t.longest() + 2*t.lag)
	defer over.Stop()
	tick := time.NewTicker(max(t.every, time.Millisecond))
	defer tick.Stop()
	if t.every < 0 {
		tick.Stop()
	}
	idle := time.NewTicker(idleTime + 3*t.lag)
	defer idle.Stop()
	before := int64(-1)
	for {
		select {
		case <-omitted.C:
			t.count(time.Now())
			tick.Reset(max(t.every, time.Millisecond))
			if t.every < 0 {
				tick.Stop()
			}
			over.Reset(t.longest() - t.group.params.OmitTime() + t.lag)
		case <-tick.C:
			t.reportInterval(time.Now())
		case <-idle.C:
			now := t.total()
			if now == before {
				return fmt.Errorf("%w: no data in either direction for %v", control.ErrTimeout,
					idleTime)
			}
			before = now
		case <-over.C:
			if t.server {
				return fmt.Errorf("%w: the client did not end its test", control.ErrTimeout)
			}
			return nil
		case <-t.group.enough:
			time.Sleep(own)
			return nil
		case m := <-t.control.states:
			time.Sleep(own)
			return t.handleState(m)
		case err := <-t.group.broken:
			return t.reason(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reasonTime limits the wait for the other end's reason after a stream breaks.
const reasonTime = 2 * time.Second

// reason returns why a stream ended: the other end's reason if it sends one.
func (t *test) reason(err error) error {
	select {
	case m := <-t.control.states:
		if theirs := t.handleState(m); theirs != nil {
			return theirs
		}
		return err
	case <-time.After(reasonTime):
		return err
	}
}

// handleState handles a state that arrives during the measurement. A server receives the end of the
// test from its client; a client fails, because a server sends no state at that time.
func (t *test) handleState(m stateMessage) error {
	switch {
	case m.err != nil:
	case !t.server:
		m.err = fmt.Errorf("%w: state %v during the measurement", ErrMessage, m.state)
	default:
		m.err = t.control.wanted(m.state, TestEnd, nil)
	}
	if m.err != nil {
		t.control.states = nil
	}
	return m.err
}

// longest returns the maximum duration of the measurement. A server allows more time than the
// client requested.
func (t *test) longest() time.Duration {
	d := t.group.params.Duration()
	switch {
	case d == 0 || t.group.params.Num > 0 || t.group.params.Blocks > 0:
		return 10 * MaxSeconds * time.Second // the number of bytes ends the test, not the time
	case t.server:
		d += 2 * patience
	}
	return d + t.group.params.OmitTime()
}

func (t *test) open() {
	t.group.broken = make(chan error, len(t.streams))
	t.group.began = time.Now()
	t.from, t.reportedAt, t.used = t.group.began, t.group.began, cpuNow()
	t.group.counting.Store(t.group.params.Omit == 0)
	for i, s := range t.streams {
		t.group.busy.Go(func() {
			time.Sleep(t.lag * time.Duration(i+1))
			if err := s.run(); err != nil && !t.group.halted.Load() {
				t.group.broken <- fmt.Errorf("stream %d: %w", s.id, err)
			}
		})
	}
}

func (t *test) count(now time.Time) {
	if t.group.counting.Load() {
		return
	}
	t.reportLastInterval(now)
	for _, s := range t.streams {
		s.base = s.count(s.info())
		s.last, s.seen = s.base, peaks{}
	}
	t.from, t.reportedAt, t.used = now, now, cpuNow()
	t.group.counting.Store(true)
}

func (t *test) total() (n int64) {
	for _, s := range t.streams {
		n += s.moved.Load()
	}
	return n
}

// halt ends the measurement. Bytes that arrive later do not count.
func (t *test) halt() {
	t.until = time.Now()
	t.reportLastInterval(t.until)
	t.used = cpuNow().minus(t.used)
	// With a simulated clock, the CPU time would make results differ between runs with one seed.
	if t.host.node.Time.Driven() {
		t.used = cpuTime{}
	}
	t.group.halted.Store(true)
	close(t.group.stop)
	for _, s := range t.streams {
		if s.sender {
			s.mu.Lock()   // after this, every holder of the lock sees that the test has halted
			s.mu.Unlock() //nolint:staticcheck // the lock is only a barrier
			s.transport.halt()
		}
	}
}

// close closes all connections of the test, and waits for its streams.
func (t *test) close() {
	if !t.group.halted.Swap(true) {
		close(t.group.stop)
	}
	for _, s := range t.streams {
		s.transport.halt()
		s.transport.close()
	}
	for _, f := range t.closers {
		f()
	}
	t.group.busy.Wait()
}

func (t *test) results() Results {
	r := Results{Retransmits: -1, Congestion: t.algo()}
	r.CPUTotal, r.CPUUser, r.CPUSystem = t.used.percent(t.until.Sub(t.from))
	for _, s := range t.streams {
		c := s.count(s.info())
		d := c.minus(s.base)
		one := StreamResult{
			ID: Number(s.id), Bytes: Number(d.bytes), Retransmits: -1,
			Jitter: s.jitter().Seconds(), Errors: Number(c.lost),
			OmittedErrors: Number(s.base.lost), Packets: Number(c.packets),
			OmittedPackets: Number(s.base.packets), End: t.until.Sub(t.from).Seconds(),
		}
		if s.sender {
			r.Retransmits = 0
			if t.group.params.Proto() == "TCP" {
				r.Retransmits = 1
				one.Retransmits = Number(d.retransmits)
			}
		}
		r.Streams = append(r.Streams, one)
	}
	return r
}

// algo returns the congestion control of the streams; empty if they do not use TCP.
func (t *test) algo() string {
	for _, s := range t.streams {
		if b, ok := s.transport.(*byteTransport); ok && b.tcp != nil {
			if i, err := b.tcp.Info(); err == nil {
				return i.CongestionControl
			}
		}
	}
	return ""
}
