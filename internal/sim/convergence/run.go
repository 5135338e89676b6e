package convergence

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/rip"
)

// Messages counts the messages of all routers.
type Messages struct {
	Requests  uint64 `json:"requests"`
	Responses uint64 `json:"responses"`
	Triggered uint64 `json:"triggered"` // triggered updates, which Responses includes
	Entries   uint64 `json:"entries"`
}

func (m Messages) minus(o Messages) Messages {
	return Messages{
		m.Requests - o.Requests, m.Responses - o.Responses,
		m.Triggered - o.Triggered, m.Entries - o.Entries,
	}
}

// Phase is the reaction of the network to one event.
type Phase struct {
	Name string `json:"name"`
	// Converged is the time until all routes were right.
	Converged time.Duration `json:"converged_ns"`
	// Steps are the times until half, nine tenths and so on of the routes were right.
	Steps []Step `json:"-"`
	// Messages counts the messages until Converged.
	Messages Messages      `json:"messages"`
	Changes  uint64        `json:"changes"` // number of changes of routing tables
	Loops    int           `json:"loops"`   // routing loops that lasted longer than an instant
	Longest  time.Duration `json:"longest_loop_ns"`
	Highest  int           `json:"highest_cost"` // maximum finite cost in any table
}

// Result is the result of an experiment.
type Result struct {
	Name     string        `json:"name"`
	Dialect  string        `json:"dialect"`
	Seed     uint64        `json:"seed"`
	Routers  int           `json:"routers"`
	Links    int           `json:"wires"`
	Diameter int           `json:"diameter"`
	Routes   int           `json:"routes"` // number of routes in all tables
	Phases   []Phase       `json:"phases"`
	Packets  uint64        `json:"packets"`
	Elapsed  time.Duration `json:"virtual_ns"`
	Hash     string        `json:"hash"`
}

// ErrUnfinished means that a network did not converge in time.
var ErrUnfinished = errors.New("did not converge")

// event is a change of the network.
type event struct {
	name  string
	limit time.Duration // limit for the routes to become right
	do    func()
	// lasting means that the event takes time, and that the network is unchanged at its end.
	lasting bool
}

func (w *network) run(r *Result) error {
	t := w.effective()
	// A change spreads with triggered updates, or with the next full update. Routers detect a
	// silent failure only after a timeout.
	hop := max(t.TriggerMax, 0) + linkDelay + linkSpread
	known := rip.Infinity*hop + 2*(t.Periodic+max(t.PeriodicOffset, 0))
	silent := t.Timeout + known
	link := w.chooseLink()
	for _, e := range []event{
		{name: "start", limit: known, do: func() {}},
		{name: "cut, both ends know", limit: known, do: func() { w.setDown(link, true) }},
		{name: "repaired", limit: known, do: func() { w.setDown(link, false) }},
		{name: "ten flaps", limit: known, do: func() { w.flap(link) }, lasting: true},
		{name: "cut silently", limit: silent, do: func() { w.setBroken(link, true) }},
		{name: "repaired", limit: known, do: func() { w.setBroken(link, false) }},
	} {
		if err := w.phase(r, &e); err != nil {
			return err
		}
		if r.Routes == 0 {
			r.Routes = len(w.observer.cells) - bytes.Count(w.observer.want, []byte{rip.Infinity})
		}
	}
	return nil
}

// flapping is how long a flapping link stays down, and also how long it then stays up.
const flapping = 50 * time.Millisecond

func (w *network) flap(link int) {
	for range 10 {
		w.setDown(link, true)
		w.Run(flapping)
		w.setDown(link, false)
		w.Run(flapping)
	}
}

// chooseLink picks the link of the events: the first one from the middle on whose loss does not
// divide the network, or the middle one if every loss does.
func (w *network) chooseLink() int {
	middle := len(w.links) / 2
	for i := range w.links {
		if at := (middle + i) % len(w.links); !w.bridge(at) {
			return at
		}
	}
	return middle
}

// phase triggers an event, and waits until all routes have been right for a whole update period.
func (w *network) phase(r *Result, e *event) error {
	v, before := w.observer, w.messages()
	if e.lasting {
		v.begin()
		e.do()
	} else {
		e.do()
		v.begin()
	}
	began := w.Now()
	deadline := began.Add(e.limit)
	t := w.effective()
	p := Phase{Name: e.name}
	for stable := false; !stable; {
		if !w.RunUntil(deadline.Sub(w.Now()), func() bool { return v.wrong == 0 }) {
			return fmt.Errorf("%w: %s, %s: %d of %d routes are wrong after %v",
				ErrUnfinished, r.Name, e.name, v.wrong, len(v.cells), e.limit)
		}
		settled := v.settled
		p.Messages, p.Changes = w.messages().minus(before), v.changes
		p.Converged = max(0, settled.Sub(began))
		w.Run(t.Periodic + max(t.PeriodicOffset, 0))
		stable = v.wrong == 0 && v.settled == settled
	}
	v.end()
	p.Steps = append(p.Steps, v.reached...)
	p.Loops, p.Longest, p.Highest = v.found, v.longest, v.highest
	r.Phases = append(r.Phases, p)
	return nil
}
