package examine

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Self is the subject that runs our own stack, in virtual time.
type Self struct {
	// Change returns a function for each run, for tests of the examiner. The function returns the
	// packets that replace a packet to or from the subject. Nil: no changes.
	Change func() func(toSubject bool, packet []byte) [][]byte
	// Knobs configure the subject's TCP.
	Knobs tcp.Knobs
}

// Name implements Subject.
func (*Self) Name() string { return "self" }

// Has implements Subject. Self has all features.
func (*Self) Has(Feature) bool { return true }

// RIPPeriod implements Subject.
func (*Self) RIPPeriod() time.Duration { return rip.Timers{}.WithDefaults(rip.Course).Periodic }

// RIPTimeout implements Subject.
func (*Self) RIPTimeout() time.Duration { return rip.Timers{}.WithDefaults(rip.Course).Timeout }

// Start implements Subject.
func (s *Self) Start(net *Setup) (Run, error) {
	cfg := stack.Config{Forwarding: net.Router, TCP: tcp.Config{
		Knobs:   s.Knobs,
		Secret:  [16]byte{1, 2, 3, 4, 5, 6, 7, 8},
		Buffers: tcp.Buffers{Recv: 1<<16 - 1, RecvMax: 1<<16 - 1},
	}}
	if net.Router {
		cfg.RIP = &rip.Config{}
	}
	for i, l := range net.Links {
		cfg.Interfaces = append(cfg.Interfaces, stack.Interface{Name: l.Name, Addr: l.Addr})
		if net.Router {
			cfg.RIP.Neighbors = append(cfg.RIP.Neighbors, rip.Neighbor{Addr: l.Peer, Iface: i})
		}
	}
	u, err := newUser(1, cfg)
	if err != nil {
		return nil, err
	}
	r := &selfRun{user: u, now: 1}
	if s.Change != nil {
		r.change = s.Change()
	}
	u.settle(r.now)
	return r, nil
}

// selfRun is a Run in virtual time.
type selfRun struct {
	user    *user
	now     clock.Time
	change  func(toSubject bool, packet []byte) [][]byte
	changed []Arrival
}

func (r *selfRun) Now() clock.Time { return r.now }

func (r *selfRun) Send(link int, packet []byte) error {
	packets := [][]byte{packet}
	if r.change != nil {
		packets = r.change(true, packet)
	}
	for _, p := range packets {
		r.user.input(r.now, link, p)
	}
	return nil
}

// Receive advances time until the stack sends a packet.
func (r *selfRun) Receive(until clock.Time) (Arrival, bool) {
	for {
		if a, ok := r.take(); ok {
			return a, true
		}
		due := r.user.stack.Deadline()
		if due == clock.Never || due > until {
			r.now = max(r.now, until)
			return Arrival{}, false
		}
		r.now = max(r.now, due)
		r.user.advance(r.now)
	}
}

// take returns the next packet that is ready.
func (r *selfRun) take() (Arrival, bool) {
	for len(r.changed) == 0 {
		if len(r.user.out) == 0 {
			return Arrival{}, false
		}
		a := r.user.out[0]
		r.user.out = r.user.out[1:]
		if r.change == nil {
			return a, true
		}
		for _, p := range r.change(false, a.Data) {
			r.changed = append(r.changed, Arrival{At: a.At, Link: a.Link, Data: p})
		}
	}
	a := r.changed[0]
	r.changed = r.changed[1:]
	return a, true
}

func (r *selfRun) Do(c Command) error { return r.user.do(r.now, c) }

func (r *selfRun) Printed() string { return r.user.shown.String() }

func (r *selfRun) File() ([]byte, bool) { return r.user.file, r.user.done }

func (r *selfRun) Ended() *Ending { return nil }

func (r *selfRun) Close() {}
