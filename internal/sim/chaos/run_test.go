package chaos_test

import (
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// These are limits of a seed's run, in virtual time. A connection without progress for maxIdle is
// stuck: no connection pauses for more than a few minutes between two attempts.
const (
	maxIdle   = 24 * time.Hour
	maxEvents = 5_000_000
	port      = 80
)

// seedRun is the run of one seed.
type seedRun struct {
	*scenario
	seed        uint64
	line        *sim.Line
	left, right end
	failure     string
	reopened    bool // the listener accepted a second connection: see secondConnection
}

// end is one end of the connection.
type end struct {
	name string
	app  *sim.Bulk
	conn *sim.Conn // connection of the end; nil: not connected yet
	// halfOpen is set if the end still waited for data after the peer's connection had ended.
	halfOpen bool
}

// play runs a seed. If trace is set, play writes a line to it for each packet.
func play(seed uint64, ipv6 bool, trace io.Writer) (o *outcome) {
	r := &seedRun{scenario: draw(seed, ipv6), seed: seed}
	defer func() {
		if p := recover(); p != nil {
			r.fail("panic: %v\n%s", p, debug.Stack())
			o = r.outcome()
		}
	}()
	if err := r.build(trace); err != nil {
		r.fail("world: %v", err)
		return r.outcome()
	}
	r.run()
	return r.outcome()
}

func (r *seedRun) build(trace io.Writer) error {
	l, err := sim.NewLine(r.seed, r.scenario.line)
	if err != nil {
		return err
	}
	r.line = l
	r.left = end{name: "left", app: &r.scenario.left}
	r.right = end{name: "right", app: &r.scenario.right}
	if trace != nil {
		for _, h := range l.Hosts() {
			h.Stack().SetTap(tracer(trace, h.Name()))
		}
	}
	if _, err := l.Right.Listen(port, 1, func(c *sim.Conn) sim.App {
		if r.right.conn != nil {
			r.secondConnection()
			return &sim.Bulk{}
		}
		r.right.conn = c
		return r.right.app
	}); err != nil {
		return err
	}
	sim.End{Host: l.Left}.SetRoom(r.rooms[0])
	sim.End{Host: l.Right}.SetRoom(r.rooms[1])
	r.schedule()
	r.left.conn, err = l.Left.Dial(l.Address(port), r.left.app)
	return err
}

// secondConnection handles a second connection from one SYN. While a SYN cookie is valid, a host
// cannot distinguish a late segment of an old connection from the end of a handshake (RFC 4987
// §3.6). It then opens a second connection, and the checks of both ends no longer apply.
func (r *seedRun) secondConnection() {
	if r.scenario.line.Right.SynCookies != tcp.CookiesAlways {
		r.fail("one connection was opened twice")
	}
	r.reopened = true
}

func (r *seedRun) schedule() {
	for _, o := range r.outages {
		cut := func(cut bool) func(clock.Time) {
			return func(clock.Time) {
				if o.left {
					sim.End{Host: r.line.Left}.Cut(cut)
				}
				if o.right {
					first := append(r.line.Routers, r.line.Right)[0]
					sim.End{Host: first}.Cut(cut)
				}
			}
		}
		r.line.At(r.line.Now().Add(o.at), cut(true))
		r.line.At(r.line.Now().Add(o.at+o.length), cut(false))
	}
}

// tracer prints the packets that a host sends, receives and drops.
func tracer(out io.Writer, name string) stack.Tap {
	arrow := map[stack.Direction]string{stack.Inbound: "<", stack.Outbound: ">"}
	return func(now clock.Time, i int, d stack.Direction, why ip.DropReason, pieces [][]byte) {
		line := fmt.Appendf(nil, "%12.6f %-8s %d %s ", float64(now)/1e9, name, i, arrow[d])
		line = capture.Describe(line, pieces[0])
		if why != ip.DropNone {
			line = fmt.Appendf(line, " DROPPED: %v", why)
		}
		_, _ = fmt.Fprintf(out, "%s\n", line)
	}
}

// run runs the world until both ends have finished, and until late packets are gone.
func (r *seedRun) run() {
	over := func() bool { return r.left.app.Over && (r.right.app.Over || r.right.conn == nil) }
	for last := r.progress() - 1; r.active() && !over() && last != r.progress(); {
		last = r.progress()
		r.steps(maxIdle, over)
	}
	if r.reopened {
		return
	}
	if r.failure == "" && !over() {
		r.stuck()
	}
	if r.failure == "" {
		r.checkEnds()
	}
	if r.failure == "" {
		// The run continues for longer than twice the longest MSL, and than all retransmissions of
		// a SYN-ACK.
		r.steps(maxIdle, func() bool { return false })
	}
	if r.active() {
		r.checkEmpty()
	}
}

func (r *seedRun) active() bool { return r.failure == "" && !r.reopened }

// progress returns a measure of progress: bytes read and acknowledged, and finished ends.
func (r *seedRun) progress() (n uint64) {
	for _, e := range []*end{&r.left, &r.right} {
		if e.conn != nil {
			n += 1 + e.app.Received + e.conn.TCP().Tx().Head()
		}
		if e.app.Over {
			n++
		}
	}
	return n
}

// steps runs the world until done, and checks the invariants at each step.
func (r *seedRun) steps(d time.Duration, done func() bool) {
	until := r.line.Now().Add(d)
	for r.active() && !done() && r.line.Step(until) {
		if !r.reopened {
			r.checkAlways()
		}
		if r.line.Stats().Events > maxEvents {
			r.fail("more than %d events in %v", maxEvents, r.line.Elapsed())
		}
	}
}

func (r *seedRun) fail(format string, args ...any) {
	if r.failure == "" {
		r.failure = fmt.Sprintf("seed %d: "+format, append([]any{r.seed}, args...)...)
	}
}

func (r *seedRun) outcome() *outcome {
	o := &outcome{
		seed: r.seed, failure: r.failure,
		verified: r.scenario.left.Received + r.scenario.right.Received,
	}
	if r.line == nil {
		return o
	}
	s := r.line.Stats()
	o.events, o.packets, o.hash = s.Events, s.Delivered, r.line.Hash()
	for _, h := range r.line.Hosts() {
		for i := range h.Stack().Interfaces().Infos() {
			if out := (sim.End{Host: h, Iface: i}).Out(); out != nil {
				c := out.Counters()
				o.faults.Add(&c)
			}
		}
	}
	o.ends = [2]string{r.left.outcome(), r.right.outcome()}
	if r.reopened {
		o.ends = [2]string{"opened twice from a SYN cookie", "opened twice from a SYN cookie"}
	}
	return o
}

func (e *end) outcome() string {
	switch {
	case e.conn == nil:
		return "never connected"
	case e.halfOpen:
		return "half-open"
	}
	return endName(e.app.Err)
}
