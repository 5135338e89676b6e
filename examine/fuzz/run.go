package fuzz

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Step is one event of a sequence and its result.
type Step struct {
	Event   Event
	Before  tcp.State // state of the model before the event
	Rule    int       // line of the last rule that applied
	Want    string    // what the model allows
	Outcome Outcome
	Wrong   string // why the model does not allow the outcome; empty: the outcome is allowed
	need    []Answer
}

// exposed is a trial that reveals the state of its connection.
type exposed interface{ state() tcp.State }

// timed is a trial in real time.
type timed interface {
	// late reports whether the fuzzer got CPU time too late.
	late() bool
	// hurry makes events end early once enough returns true and the stack is silent. Nil: events do
	// not end early.
	hurry(enough func() bool)
}

// errLate is the error of a trial that differs, possibly because this machine was too slow.
var errLate = errors.New("the machine is too busy")

// runner carries out sequences on a stack and applies the model to them.
type runner struct {
	stack Stack
	hasty bool // all events but the last end early, once the model requires no more
	peer  peer
	model model
	want  expectation
	out   Outcome
	sent  Segment
	// visit, if it is not nil, gets each event with what the model expects and what the stack sent.
	// The sequence ends if visit returns false.
	visit func(e *Event, x *expectation, o *Outcome, wrong string) bool
}

// iss is the peer's initial sequence number. It makes sequence numbers wrap soon.
const iss = 1<<32 - 15

// run carries out a sequence, without the events that may not happen. It returns the events that it
// carried out, up to the first one after which the stack does something that the model does not
// allow.
func (r *runner) run(events []Event, done []Event) ([]Event, string, error) {
	t, err := r.stack.Start()
	if err != nil {
		return nil, "", err
	}
	defer t.Close()
	shown, _ := t.(exposed)
	wall, _ := t.(timed)
	r.peer, r.model = peer{iss: iss}, newModel()
	r.model.tolerant = shown == nil // other stacks count rate-limited answers differently
	acked := int64(math.MinInt64)
	var segment *Segment
	record := func(s *Segment) { r.peer.record(s, segment, &r.out) }
	for i := range events {
		e := &events[i]
		if !r.model.permits(e, &r.peer) {
			continue
		}
		done = append(done, *e)
		r.out = Outcome{Sent: r.peer.got, Acked: acked}
		segment = nil
		if e.Kind == Send {
			r.sent = r.peer.build(e)
			segment = &r.sent
		}
		r.model.step(e, segment, &r.peer, &r.want)
		switch e.Kind {
		case Send:
			err = t.Send(segment)
		case Wait:
		default:
			err = t.Call(e)
		}
		if wall != nil && r.hasty {
			wall.hurry(r.enough(i == len(events)-1))
		}
		if err == nil {
			err = t.Pass(e, record)
		}
		if err != nil {
			return done, "", err
		}
		acked = r.out.Acked
		r.model.answered(&r.out)
		wrong := r.want.judge(&r.out)
		if wrong == "" && shown != nil && shown.state() != r.model.state {
			wrong = fmt.Sprintf("it must be in %s, not in %s", r.model.state, shown.state())
		}
		if wall != nil && !r.hasty && wrong != "" && wall.late() {
			return done, "", errLate
		}
		if r.visit != nil && !r.visit(e, &r.want, &r.out, wrong) || wrong != "" {
			return done, wrong, nil
		}
	}
	return done, "", nil
}

// enough returns the condition for hurry. The last event takes its full time, because no later
// event would receive its late answers.
func (r *runner) enough(last bool) func() bool {
	if last {
		return nil
	}
	return func() bool { return r.want.judge(&r.out) == "" }
}

// patient carries out a sequence, and repeats it if the machine was too busy.
func patient(do func() error) (err error) {
	const most = 5
	for range most {
		if err = do(); !errors.Is(err, errLate) {
			break
		}
	}
	return err
}

// trace carries out a sequence and returns all its steps.
func trace(stack Stack, events []Event) (steps []Step, err error) {
	err = patient(func() error {
		steps, err = traceOnce(stack, events)
		return err
	})
	return steps, err
}

func traceOnce(stack Stack, events []Event) ([]Step, error) {
	var steps []Step
	r := &runner{stack: stack}
	r.visit = func(e *Event, x *expectation, o *Outcome, wrong string) bool {
		s := Step{*e, x.before, x.rule, x.describe(), *o, wrong, slices.Clone(x.need)}
		steps = append(steps, s)
		return true
	}
	_, _, err := r.run(events, nil)
	return steps, err
}

// describe lists the required answers in words.
func (x *expectation) describe() string {
	all := Answer(0)
	for _, a := range x.need {
		all |= a & -a // one answer of each set
	}
	return all.String()
}

// shrink returns the shortest sequence that it finds for which holds is true. It removes events and
// simplifies the numbers of the others.
func shrink(events []Event, holds func(events []Event) bool) []Event {
	for smaller := true; smaller; {
		smaller = false
		// n = 2 removes, for example, a segment and its consequence
		for n := 1; n <= 2 && !smaller; n++ {
			for i := len(events) - n; i >= 0; i = min(i, len(events)-n+1) - 1 {
				if less := slices.Delete(slices.Clone(events), i, i+n); holds(less) {
					events, smaller = less, true
				}
			}
		}
		for i := range events {
			for _, plain := range plainer(events[i]) {
				less := slices.Clone(events)
				less[i] = plain
				if holds(less) {
					events, smaller = less, true
					break
				}
			}
		}
	}
	return events
}

// plainer returns simpler events that may have the same effect as e.
func plainer(e Event) []Event {
	if e.Kind != Send {
		return nil
	}
	var list []Event
	if e.Ack != 0 {
		x := e
		x.Ack = 0
		list = append(list, x)
	}
	if e.Seq != 0 && !e.Beyond {
		x := e
		x.Seq = 0
		list = append(list, x)
	}
	if e.Flags.Has(tcp.SYN | tcp.FIN) {
		x := e
		x.Flags &^= tcp.FIN
		list = append(list, x)
	}
	if e.Len > 0 {
		x := e
		x.Len, x.Flags = 0, e.Flags&^tcp.PSH
		list = append(list, x)
	}
	return list
}
