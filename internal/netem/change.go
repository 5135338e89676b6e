package netem

import (
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Change gives the link another configuration. What is on the wire arrives when it would
// have, and what waits goes into the new queue, or onto the wire if there is none. Models
// and random streams start anew; the counters go on.
func (l *Link) Change(
	now clock.Time, cfg Config, stream func(part string) *rand.Rand,
) error {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	l.Advance(now)
	if cfg.Origin == 0 {
		cfg.Origin = now
	}
	old, served := l.queue, l.serving
	l.serving, l.turn = nil, clock.Never
	l.last = clock.Never // nobody waits for what the old delay holds
	l.configure(cfg, stream)
	if served != nil {
		l.resend(now, served)
	}
	for old != nil {
		p := old.Take(now)
		if p == nil {
			break
		}
		l.depth.add(-1, -len(p.data))
		l.resend(now, p)
	}
	l.depth.packets, l.depth.bytes = l.Queued()
	return nil
}

// resend has a packet that waits start again: it is counted in already.
func (l *Link) resend(now clock.Time, p *Packet) {
	if l.server == nil && l.loses(now, len(p.data)) {
		l.discard(now, p, Model)
		return
	}
	if l.server != nil {
		l.depth.add(1, len(p.data))
	}
	l.send(now, p)
}

// Clear sets the counters to zero, but for what is inside, which counts as having just
// come: their sums stay right.
func (l *Link) Clear() {
	l.counters = Counters{In: uint64(l.store.packets), InBytes: uint64(l.store.bytes)}
}

// Release gives back the memory of a link that is empty.
func (l *Link) Release() {
	if l.store.packets == 0 {
		l.store, l.wire = store{pool: &Pool{}}, wire{}
	}
}
