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

// test is a measurement, at either end. Except for its group, one goroutine owns it: the one that
// has the control connection.
type test struct {
	group   group
	host    *Host
	server  bool
	control *wire
	cookie  Cookie
	streams []*stream
	every   time.Duration // between reports; negative: none

	report   control.PerfReport
	start    func(control.PerfStart)    // nil: nobody wants to know, as with the next
	interval func(control.PerfInterval) // nil
	from     time.Time                  // it counts since then
	told     time.Time                  // of the last report
	until    time.Time                  // the end
	used     cpuTime                    // when it began to count, and then until the end
	closers  []func()                   // what close closes beside the streams
	offers   []*rdtCarrier              // of a client that sends by RDT
}

// group is what the streams of a test share.
type group struct {
	params   Params
	began    time.Time
	halted   atomic.Bool
	stop     chan struct{} // closed when halted
	broken   chan error    // of streams; it has room for all
	busy     sync.WaitGroup
	counting atomic.Bool // nothing is omitted any more

	most   int64        // bytes after which it ends; 0: something else ends it
	left   atomic.Int64 // of them, those that no sender has taken yet
	sent   atomic.Int64 // by senders, while it counts
	gained atomic.Int64 // by receivers
	once   sync.Once    // closes enough
	enough chan struct{}
}

func (h *Host) newTest(server bool) *test {
	t := &test{host: h, server: server, every: time.Second}
	t.group.stop, t.group.enough = make(chan struct{}), make(chan struct{})
	t.report.Intervals = []control.PerfInterval{}
	t.report.Start.Connected = []control.PerfConnected{}
	t.report.End.Streams = []control.PerfStreamEnd{}
	return t
}

func (t *test) agree(p Params) {
	t.group.params = p
	most := p.Num
	if p.Blocks > 0 {
		most = p.Blocks
		if most > math.MaxInt64/int64(p.Len) {
			most = math.MaxInt64
		} else {
			most *= int64(p.Len)
		}
	}
	if !t.server { // who goes on until he is told to end
		t.group.most = most
		t.group.left.Store(most)
	}
}

// reserve takes a block of what may be sent, and reports whether there was one.
func (g *group) reserve() bool {
	if g.most == 0 || !g.counting.Load() {
		return true
	}
	block := int64(g.params.Len)
	return g.left.Add(-block)+block > 0
}

// moved adds to what was sent, or gained, and ends the test when that is as much as was asked for.
func (g *group) moved(total *atomic.Int64, n int) {
	if g.counting.Load() && total.Add(int64(n)) >= g.most && g.most > 0 {
		g.satisfy()
	}
}

func (g *group) satisfy() { g.once.Do(func() { close(g.enough) }) }

// run is a test at either end: what comes before it is measured, the measurement, and what comes
// behind that. Whoever gives up aborts the control connection, with which a wait of the protocol
// ends; while it is measured he tells the other end.
func (t *test) run(ctx context.Context, before, behind func() error) error {
	c := t.control
	stop := context.AfterFunc(ctx, c.conn.Abort)
	defer func() { stop() }()
	c.conn.Guard()
	if err := before(); err != nil {
		return err
	}
	stop()
	if t.server { // whose end is told from here on, for the client knows that it is measured
		if err := c.running(); err != nil {
			return err
		}
	}
	t.begin()
	err := t.measure(ctx)
	t.halt()
	if err == nil {
		stop = context.AfterFunc(ctx, c.conn.Abort)
		return behind()
	}
	t.finish(&Results{})
	switch {
	case ctx.Err() == nil:
	case t.server:
		err = errServerEnded
		c.part(ServerTerminate)
	default:
		c.part(ClientTerminate)
	}
	return err
}

// theirs reads the other end's results.
func (t *test) theirs() (Results, error) {
	text, err := t.control.receive(MaxResults)
	if err != nil {
		return Results{}, err
	}
	return ParseResults(text, len(t.streams))
}

// measure runs the streams until the test is over: nil, in order.
func (t *test) measure(ctx context.Context) error {
	t.open()
	omitted := time.NewTimer(t.group.params.OmitTime())
	defer omitted.Stop()
	over := time.NewTimer(t.longest())
	defer over.Stop()
	tick := time.NewTicker(max(t.every, time.Millisecond))
	defer tick.Stop()
	if t.every < 0 {
		tick.Stop()
	}
	idle := time.NewTicker(idleTime)
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
			over.Reset(t.longest() - t.group.params.OmitTime())
		case <-tick.C:
			t.tell(time.Now())
		case <-idle.C:
			now := t.total()
			if now == before {
				return fmt.Errorf("%w: nothing has moved for %v", control.ErrTimeout, idleTime)
			}
			before = now
		case <-over.C:
			if t.server {
				return fmt.Errorf("%w: the client does not end its test", control.ErrTimeout)
			}
			return nil
		case <-t.group.enough:
			return nil
		case m := <-t.control.heard:
			return t.heed(m)
		case err := <-t.group.broken:
			return t.reason(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reasonTime is how long the other end has to say why a stream of its broke.
const reasonTime = 2 * time.Second

// reason is why a stream has ended: what the other end says of it, if it does.
func (t *test) reason(err error) error {
	timer := time.NewTimer(reasonTime)
	defer timer.Stop()
	select {
	case m := <-t.control.heard:
		if said := t.heed(m); said != nil {
			return said
		}
		return err
	case <-timer.C:
		return err
	}
}

// heed takes what the other end says while it is measured: a client ends the test, a server has
// nothing to say.
func (t *test) heed(m news) error {
	switch {
	case m.err != nil:
	case !t.server:
		m.err = fmt.Errorf("%w: %v while it is measured", ErrMessage, m.state)
	default:
		m.err = t.control.wanted(m.state, TestEnd, nil)
	}
	if m.err != nil {
		t.control.heard = nil
	}
	return m.err
}

// longest is how long it may run. A server bears some more than was agreed upon.
func (t *test) longest() time.Duration {
	d := t.group.params.Duration()
	switch {
	case d == 0 || t.group.params.Num > 0 || t.group.params.Blocks > 0:
		return 10 * MaxSeconds * time.Second // something else ends it
	case t.server:
		d += 2 * patience
	}
	return d + t.group.params.OmitTime()
}

func (t *test) open() {
	t.group.broken = make(chan error, len(t.streams))
	t.group.began = time.Now()
	t.from, t.told, t.used = t.group.began, t.group.began, cpuNow()
	t.group.counting.Store(t.group.params.Omit == 0)
	for _, s := range t.streams {
		t.group.busy.Go(func() {
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
	t.rest(now)
	for _, s := range t.streams {
		s.base = s.count(s.info())
		s.last, s.seen = s.base, peaks{}
	}
	t.from, t.told, t.used = now, now, cpuNow()
	t.group.counting.Store(true)
}

func (t *test) total() (n int64) {
	for _, s := range t.streams {
		n += s.moved.Load()
	}
	return n
}

// halt ends the measurement: what moves from now on does not count.
func (t *test) halt() {
	t.until = time.Now()
	t.rest(t.until)
	t.used = cpuNow().minus(t.used)
	t.group.halted.Store(true)
	close(t.group.stop)
	for _, s := range t.streams {
		if s.sender {
			s.mu.Lock()   // behind it, who looks sees that it is halted
			s.mu.Unlock() //nolint:staticcheck // nothing else is to be done meanwhile
			s.carrier.halt()
		}
	}
}

// close ends all that the test has open, at once, and waits for its streams.
func (t *test) close() {
	if !t.group.halted.Swap(true) {
		close(t.group.stop)
	}
	for _, s := range t.streams {
		s.carrier.halt()
		s.carrier.close()
	}
	for _, f := range t.closers {
		f()
	}
	t.group.busy.Wait()
}

// results are what this end has seen.
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

// algo is the congestion control of the streams; empty: they have none.
func (t *test) algo() string {
	for _, s := range t.streams {
		if b, ok := s.carrier.(*byteCarrier); ok && b.tcp != nil {
			if i, err := b.tcp.Info(); err == nil {
				return i.Congestion
			}
		}
	}
	return ""
}
