package netem

import (
	"cmp"
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Change replaces the link's configuration. Packets on the wire arrive at the same times as without
// the change. Queued packets move to the new queue, or onto the wire if the new configuration has
// no queue. Models and random streams restart; the counters continue.
func (l *Link) Change(now clock.Time, cfg Config, stream func(part string) *rand.Rand) error {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	l.Advance(now)
	cfg.Origin = cmp.Or(cfg.Origin, now)
	old, served := l.queue, l.serving
	l.serving, l.turn = nil, clock.Never
	l.last = clock.Never // new packets need not wait for packets with the old delay
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

// Clear sets the counters to zero. Packets inside the link then count as if they had just arrived,
// so that the sums stay right.
func (l *Link) Clear() {
	l.counters = Counters{In: uint64(l.store.packets), InBytes: uint64(l.store.bytes)}
}

// Release frees the memory of an empty link.
func (l *Link) Release() {
	if l.store.packets == 0 {
		l.store, l.wire = store{pool: &Pool{}}, wire{}
	}
}
