package examine

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Units are the times of a subject, in which checks express durations.
type Units struct {
	// RTT is how long the subject may take to answer a packet.
	RTT time.Duration
	// RTO is how long the subject waits for the acknowledgment of data before it retransmits.
	RTO time.Duration
	// Period and Timeout are the subject's RIP times.
	Period, Timeout time.Duration
}

// The kinds of events in a ladder.
const (
	EventSent     = "sent"     // the examiner sent a packet
	EventReceived = "received" // the subject sent a packet
	EventCommand  = "command"  // the subject's user gave a command
	EventExpected = "expected" // an expected packet did not arrive
	EventUnwanted = "unwanted" // a forbidden packet arrived
	EventPrinted  = "printed"
)

// Event is one line of a ladder.
type Event struct {
	At   time.Duration // time since the start
	Kind string
	Text string
	Note string // remark
	Raw  []byte `json:"-"` // the packet
	Link int
}

// Failure is why a check failed.
type Failure struct {
	Line   int    // line of the check file; 0: in the steps that lead to the given state
	Step   string // text of the line
	Reason string
	// Hint names a possible cause, such as packets that were ignored.
	Hint string
}

// outcome is the result of one execution.
type outcome struct {
	verdict Verdict
	late    bool // the run failed, and the examiner itself was late
	failure *Failure
	ladder  []Event
	took    time.Duration
	setup   Setup
}

// maxEvents and maxPackets limit an execution whose subject never stops sending.
const (
	maxEvents  = 400
	maxPackets = 5_000 // between two packets from the examiner
)

// execution carries out a check against a run.
type execution struct {
	check     *Check
	setup     Setup
	run       Run
	units     Units
	masks     bool // RIP entries have masks
	conn      *conn
	opened    int // number of connections so far
	window    uint16
	kept      map[string]int64
	pending   []*packet // packets received since the last action of the examiner or the user
	last      *packet   // packet that the last expect matched
	before    *packet   // packet that the expect before the last one matched
	sent      []byte    // what the peer's application has sent in a transfer
	never     []*step
	ladder    []Event
	began     clock.Time
	ignored   []string // reasons for which packets were ignored
	packets   int
	announced clock.Time
	late      bool // the examiner itself was late
}

// stop ends an execution early, for a reason.
type stop struct {
	verdict Verdict
	reason  string
}

func (s *stop) Error() string { return s.reason }

func failed(format string, a ...any) error { return &stop{Fail, fmt.Sprintf(format, a...)} }

// execute carries out a check on a new start of the subject.
func execute(subject Subject, check *Check, units Units) *outcome {
	x, done, err := start(subject, check, units)
	if err != nil {
		o := &outcome{verdict: Hung, failure: &Failure{Reason: err.Error()}}
		if e := new(EndError); errors.As(err, &e) {
			o.verdict = e.Verdict
		}
		return o
	}
	defer done()
	o := &outcome{setup: x.setup}
	o.failure, o.verdict = x.all()
	o.ladder, o.took = x.ladder, x.run.Now().Sub(x.began)
	o.late = (x.late || Stalled(x.run)) && o.verdict != Pass
	return o
}

// Stalled reports whether the examiner got the CPU too late during a run.
func Stalled(r Run) bool {
	timed, ok := r.(interface{ stalled() bool })
	return ok && timed.stalled()
}

// start starts the subject for a check. The caller must call done.
func start(subject Subject, check *Check, units Units) (x *execution, done func(), err error) {
	s := setup(check.Router)
	run, err := subject.Start(&s)
	if err != nil {
		return nil, nil, err
	}
	x = &execution{
		check: check, setup: s, run: run, units: units, masks: subject.Has(FeatureMasks),
		kept: map[string]int64{}, window: math.MaxUint16, began: run.Now(),
	}
	x.reset()
	if s.Announce {
		x.announce()
		if err := x.wait(&step{span: span{1, "rtt"}}); err != nil {
			if e := run.Ended(); e != nil {
				err = &EndError{*e}
			} else if stop := new(stop); errors.As(err, &stop) {
				err = &EndError{Ending{stop.verdict, stop.reason}}
			}
			run.Close()
			return nil, nil, err
		}
	}
	return x, run.Close, nil
}

// announce sends the subject the examiner's addresses by RIP. receive repeats that twice a period.
func (x *execution) announce() {
	x.announced = x.run.Now()
	width := 12
	if !x.masks {
		width = 8
	}
	for i, l := range x.setup.Links {
		w := &pattern{kind: ripKind, terms: []term{{
			key: "on",
			lo:  &expr{[]exprPart{{1, int64(i), ""}}},
		}}}
		p := x.buildRIP(w)
		p.body = appendRIP(nil, 2, width, []ripEntry{{netip.PrefixFrom(l.Peer, 32), 0}})
		x.seal(w, p)
		_ = x.run.Send(i, p.raw) // if this fails, the next announcement repeats it
	}
}

// reset starts another connection.
func (x *execution) reset() {
	l := x.setup.Links[0]
	seed := uint32(2463534242)
	for _, r := range x.check.Name {
		seed = seed*31 + uint32(r)
	}
	x.opened++
	x.conn = &conn{
		us:   netip.AddrPortFrom(l.Peer, uint16(40000+x.opened)),
		them: netip.AddrPortFrom(l.Addr.Addr(), servicePort),
		iss:  seed + uint32(x.opened)*64000, scale: -1,
	}
}

// Ports of the subject and of the peer to which the subject connects.
const (
	servicePort = 8080
	peerPort    = 7070
)

// all carries out the steps of the given state and those of the check.
func (x *execution) all() (*Failure, Verdict) {
	for i := range x.check.prelude() {
		s := &x.check.prelude()[i]
		if err := x.one(s); err != nil {
			f, v := x.failure(s, err)
			f.Line = 0
			if v == Fail {
				v = Blocked
				f.Reason = "on the way to " + x.check.given + ": " + f.Reason
			}
			return f, v
		}
	}
	blocked := x.check.then()
	for i := range x.check.steps {
		s := &x.check.steps[i]
		if err := x.one(s); err != nil {
			f, v := x.failure(s, err)
			if v == Fail && i < blocked {
				v = Blocked
				f.Reason = "before the check's own steps: " + f.Reason
			}
			return f, v
		}
	}
	return nil, Pass
}

func (x *execution) failure(s *step, err error) (*Failure, Verdict) {
	f := &Failure{Line: s.line, Step: s.source, Reason: err.Error()}
	if n := len(x.ignored); n > 0 {
		f.Hint = fmt.Sprintf("%d packets from the stack were ignored, as a peer ignores them; "+
			"the first: %s", n, x.ignored[0])
	}
	if e := x.run.Ended(); e != nil {
		f.Reason += "; the stack " + e.Verdict.String() + ": " + e.Detail
		return f, e.Verdict
	}
	if stop := new(stop); errors.As(err, &stop) {
		return f, stop.verdict
	}
	return f, Void
}

// one carries out a step.
func (x *execution) one(s *step) error {
	do, ok := actions[s.verb]
	if !ok {
		return x.command(s)
	}
	return do(x, s)
}

// symbol returns the value of a name in an expression.
func (x *execution) symbol(name string) int64 {
	c := x.conn
	switch name {
	case "next":
		return c.next
	case "got":
		return c.got
	case "win":
		return c.win
	case "edge":
		return c.acked + c.win
	case "mss":
		if c.mss == 0 {
			return 536
		}
		return c.mss
	}
	return x.kept[name]
}

// duration converts a time of a check.
func (x *execution) duration(s span) time.Duration {
	unit := map[string]time.Duration{
		"rtt": x.units.RTT, "rto": x.units.RTO, "period": x.units.Period,
		"timeout": x.units.Timeout, "s": time.Second,
	}[s.unit]
	return time.Duration(s.n * float64(unit))
}

// patience is how long the examiner waits for an expected packet if the check sets no time.
func (x *execution) patience(s span) time.Duration {
	if s.unit == "" {
		s = span{25, "rtt"}
	}
	return x.duration(s)
}

// note adds an event to the ladder. A long ladder keeps the first and the last events.
func (x *execution) note(kind, text string) *Event {
	const half = maxEvents / 2
	if len(x.ladder) == maxEvents {
		x.ladder = slices.Delete(x.ladder, half+1, half+2)
		gap := &x.ladder[half]
		*gap = Event{At: gap.At, Kind: gap.Kind, Text: "… more packets, not shown"}
	}
	x.ladder = append(x.ladder, Event{At: x.run.Now().Sub(x.began), Kind: kind, Text: text})
	return &x.ladder[len(x.ladder)-1]
}

// transmit sends a packet to the subject.
func (x *execution) transmit(p *packet) error {
	x.pending, x.packets = x.pending[:0], 0
	e := x.note(EventSent, p.describe(x.conn))
	e.Raw, e.Link = p.raw, p.link
	if err := x.run.Send(p.link, p.raw); err != nil {
		return &stop{Void, "send: " + err.Error()}
	}
	return nil
}

// receive returns the next packet from the subject, or nil if none arrives before the time until.
// It fails if the check forbids the packet.
func (x *execution) receive(until clock.Time) (*packet, error) {
	if x.setup.Announce && x.run.Now().Sub(x.announced) > x.units.Period/2 {
		x.announce()
	}
	a, ok := x.run.Receive(until)
	if !ok {
		if x.run.Ended() != nil {
			return nil, failed("no packet arrived")
		}
		x.late = x.late || x.run.Now().Sub(until) > 4*x.units.RTT
		return nil, nil
	}
	if x.packets++; x.packets > maxPackets {
		return nil, &stop{Flooded, fmt.Sprintf("the stack sent %d packets without being asked",
			maxPackets)}
	}
	p := decode(a.At, a.Link, a.Data)
	mine := x.conn.owns(p)
	wrong := int64(-1)
	if p.fail == "" && mine {
		wrong = x.conn.take(p)
	}
	e := x.note(EventReceived, p.describe(x.conn))
	e.Raw, e.Link, e.At = p.raw, p.link, a.At.Sub(x.began)
	if p.fail != "" {
		e.Note = "ignored: " + p.fail
		x.ignored = append(x.ignored, p.fail)
	}
	if wrong >= 0 {
		e.Kind = EventUnwanted
		return nil, failed("the byte at offset %d of the stream is not what the stack's user "+
			"wrote", wrong)
	}
	for _, s := range x.never {
		if x.usable(s.pattern, p) && x.matches(s.pattern, p) {
			e.Kind = EventUnwanted
			return nil, failed("the stack sent `%s`; line %d of the check forbids it: `%s`",
				e.Text, s.line, s.source)
		}
	}
	return p, nil
}

// usable reports whether a peer would process a packet: the packet is valid, or the pattern tests
// checksums.
func (x *execution) usable(w *pattern, p *packet) bool {
	return p.fail == "" || w.find("sum") != nil || w.find("ipsum") != nil
}

// wide reports whether RIP entries have masks.
func (x *execution) wide() bool { return x.masks }

// await returns the first packet that matches, within d.
func (x *execution) await(w *pattern, d time.Duration) (*packet, error) {
	until := x.run.Now().Add(d)
	for {
		p, err := x.receive(until)
		if p == nil || err != nil {
			return nil, err
		}
		if x.usable(w, p) && x.matches(w, p) {
			return p, nil
		}
		x.pending = append(x.pending, p)
	}
}

// recall returns the first matching packet that no step has expected yet, of those since the last
// action of the examiner or the user. So the subject may answer in any order.
func (x *execution) recall(w *pattern) *packet {
	for i, p := range x.pending {
		if x.usable(w, p) && x.matches(w, p) {
			x.pending = slices.Delete(x.pending, i, i+1)
			return p
		}
	}
	return nil
}
