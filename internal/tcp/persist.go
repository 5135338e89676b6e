package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// persist is the state of zero window probing (RFC 9293 §3.8.6.1).
type persist struct {
	at    clock.Time // when the next probe is sent; never: the window is open
	count uint8      // consecutive probes
	due   bool       // a probe must be sent
}

// probing reports whether the sender probes a zero window.
func (d *sender) probing() bool { return d.persist.at != clock.Never }

// startProbing starts zero window probing. The caller has no data in flight.
func (d *sender) startProbing(now clock.Time) {
	if d.probing() {
		return
	}
	d.rec.At.RTO = clock.Never
	d.persist.count = 0
	d.persist.at = now.Later(d.rec.RTO(0))
}

// stopProbing resumes sending. If the peer did not accept the byte of the last probe, the sender
// sends that byte first. Its loss is no sign of congestion.
func (d *sender) stopProbing(now clock.Time) {
	d.persist.at, d.persist.due = clock.Never, false
	d.rec.LoseFirst(now)
}

// windowProbe sends one byte into a zero window: the first unsent byte, or the byte of the last
// probe again.
func (d *sender) windowProbe(now clock.Time, s *sending) bool {
	d.persist.due = false
	if !d.rec.Record.Empty() {
		s.Span = d.rec.RepeatByte(now)
		return true
	}
	n := min(d.unsent(), max(1, d.usable()), d.MSS)
	finish := n == d.unsent() && d.finishes(now, n)
	if n == 0 && !finish {
		return false
	}
	open := d.usable() > 0
	d.rec.Restart(now)
	d.record(now, n, finish, s)
	d.smallEnd = d.Una // a probe is always short: Nagle's algorithm ignores it
	d.rec.At.Probe = clock.Never
	if open {
		d.persist.at = clock.Never // the window is open: this is ordinary data, only short
	} else {
		d.rec.At.RTO = clock.Never // the persist timer replaces the RTO
	}
	return true
}

// onPersist schedules the next window probe, at growing intervals. A peer that answers may keep its
// window closed forever. onPersist reports false if the peer has been silent for too long.
func (d *sender) onPersist(now clock.Time) bool {
	if d.rec.Retries++; d.wait.exhausted(int(d.rec.Retries), d.cfg.Retries.Data) {
		return false
	}
	p := &d.persist
	d.rec.Kept.Counts.WindowProbes++
	p.due, p.count = true, min(p.count+1, 32)
	p.at = now.Later(d.rec.RTO(p.count))
	return true
}
