package main

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

// These are limits of a seed's run, in virtual time. A connection without progress for maxRest is
// stuck: no connection pauses for more than a few minutes between two attempts.
const (
	maxRest   = 24 * time.Hour
	maxEvents = 5_000_000
	port      = 80
)

// game is the run of one seed.
type game struct {
	*scenario
	seed        uint64
	line        *sim.Line
	left, right end
	failure     string
	revenant    bool // set by the function again
}

// end is one end of the connection.
type end struct {
	name string
	app  *sim.Bulk
	conn *sim.Conn // connection of the end; nil: not connected yet
	// forlorn is set if the end has waited for a peer that was gone.
	forlorn bool
}

// play runs a seed. If trace is set, play writes a line to it for each packet.
func play(seed uint64, ipv6 bool, trace io.Writer) (o *outcome) {
	g := &game{scenario: draw(seed, ipv6), seed: seed}
	defer func() {
		if p := recover(); p != nil {
			g.fail("panic: %v\n%s", p, debug.Stack())
			o = g.outcome()
		}
	}()
	if err := g.build(trace); err != nil {
		g.fail("world: %v", err)
		return g.outcome()
	}
	g.run()
	return g.outcome()
}

func (g *game) build(trace io.Writer) error {
	l, err := sim.NewLine(g.seed, g.scenario.line)
	if err != nil {
		return err
	}
	g.line = l
	g.left = end{name: "left", app: &g.scenario.left}
	g.right = end{name: "right", app: &g.scenario.right}
	if trace != nil {
		for _, h := range l.Hosts() {
			h.Stack().SetTap(tracer(trace, h.Name()))
		}
	}
	if _, err := l.Right.Listen(port, 1, func(c *sim.Conn) sim.App {
		if g.right.conn != nil {
			g.again()
			return &sim.Bulk{}
		}
		g.right.conn = c
		return g.right.app
	}); err != nil {
		return err
	}
	sim.End{Host: l.Left}.SetRoom(g.rooms[0])
	sim.End{Host: l.Right}.SetRoom(g.rooms[1])
	g.schedule()
	g.left.conn, err = l.Left.Dial(l.Address(port), g.left.app)
	return err
}

// again handles a second connection from one SYN. With SYN cookies, a host cannot tell a late
// segment of an old connection from the end of a handshake while the cookie is valid (RFC 4987
// §3.6). So the connection is established a second time, and the checks of both ends no longer
// apply.
func (g *game) again() {
	if g.scenario.line.Right.SynCookies != tcp.CookiesAlways {
		g.fail("one connection was opened twice")
	}
	g.revenant = true
}

func (g *game) schedule() {
	for _, o := range g.outages {
		cut := func(cut bool) func(clock.Time) {
			return func(clock.Time) {
				if o.left {
					sim.End{Host: g.line.Left}.Cut(cut)
				}
				if o.right {
					first := append(g.line.Routers, g.line.Right)[0]
					sim.End{Host: first}.Cut(cut)
				}
			}
		}
		g.line.At(g.line.Now().Add(o.at), cut(true))
		g.line.At(g.line.Now().Add(o.at+o.length), cut(false))
	}
}

// tracer prints the packets that a host sends, receives and drops.
func tracer(out io.Writer, name string) stack.Tap {
	way := map[stack.Direction]string{stack.Inbound: "<", stack.Outbound: ">"}
	return func(now clock.Time, i int, d stack.Direction, why ip.DropReason, pieces [][]byte) {
		line := fmt.Appendf(nil, "%12.6f %-8s %d %s ", float64(now)/1e9, name, i, way[d])
		line = capture.Describe(line, pieces[0])
		if why != ip.DropNone {
			line = fmt.Appendf(line, " DROPPED: %v", why)
		}
		say(out, "%s\n", line)
	}
}

// run runs the world until both ends have finished, and until late packets are gone.
func (g *game) run() {
	over := func() bool { return g.left.app.Over && (g.right.app.Over || g.right.conn == nil) }
	for moved := g.moved() - 1; g.plays() && !over() && moved != g.moved(); {
		moved = g.moved()
		g.steps(maxRest, over)
	}
	if g.revenant {
		return
	}
	if g.failure == "" && !over() {
		g.stuck()
	}
	if g.failure == "" {
		g.checkEnds()
	}
	if g.failure == "" {
		// The run continues for longer than twice the longest MSL, and than all retransmissions of
		// a SYN-ACK.
		g.steps(maxRest, func() bool { return false })
	}
	if g.plays() {
		g.checkEmpty()
	}
}

func (g *game) plays() bool { return g.failure == "" && !g.revenant }

// moved returns a measure of progress: bytes read and acknowledged, and finished ends.
func (g *game) moved() (n uint64) {
	for _, e := range []*end{&g.left, &g.right} {
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
func (g *game) steps(d time.Duration, done func() bool) {
	until := g.line.Now().Add(d)
	for g.plays() && !done() && g.line.Step(until) {
		if !g.revenant {
			g.checkAlways()
		}
		if g.line.Stats().Events > maxEvents {
			g.fail("more than %d events in %v", maxEvents, g.line.Elapsed())
		}
	}
}

func (g *game) fail(format string, args ...any) {
	if g.failure == "" {
		g.failure = fmt.Sprintf("seed %d: "+format, append([]any{g.seed}, args...)...)
	}
}

func (g *game) outcome() *outcome {
	o := &outcome{
		seed: g.seed, failure: g.failure,
		verified: g.scenario.left.Received + g.scenario.right.Received,
	}
	if g.line == nil {
		return o
	}
	s := g.line.Stats()
	o.events, o.packets, o.hash = s.Events, s.Delivered, g.line.Hash()
	for _, h := range g.line.Hosts() {
		for i := range h.Stack().Interfaces().Infos() {
			if out := (sim.End{Host: h, Iface: i}).Out(); out != nil {
				c := out.Counters()
				o.faults.Add(&c)
			}
		}
	}
	o.ends = [2]string{g.left.outcome(), g.right.outcome()}
	if g.revenant {
		o.ends = [2]string{"risen from a cookie", "risen from a cookie"}
	}
	return o
}

func (e *end) outcome() string {
	switch {
	case e.conn == nil:
		return "never connected"
	case e.forlorn:
		return "waited for a peer that was gone"
	}
	return endName(e.app.Err)
}

// replay runs one seed and prints its details.
func replay(out io.Writer, seed uint64, ipv6, trace bool) int {
	s := draw(seed, ipv6)
	say(out, "seed %d\nline %+v\nleft %+v\nright %+v\noutages %+v\nrooms %v\n",
		seed, s.line, s.left, s.right, s.outages, s.rooms)
	var w io.Writer
	if trace {
		w = out
	}
	o := play(seed, ipv6, w)
	say(out, "ends %v, %d bytes verified, %d packets, %d events, hash %016x\nfaults %+v\n",
		o.ends, o.verified, o.packets, o.events, o.hash, o.faults)
	if o.failure != "" {
		say(out, "%s\n", o.failure)
		return 1
	}
	return 0
}
