package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// persist is the state of probing a zero window: RFC 9293 §3.8.6.1.
type persist struct {
	at    clock.Time // when the next probe is sent; never: the window is open
	count uint8      // probes in a row
	due   bool       // a probe must be sent
}

// probing reports whether a zero window is being probed.
func (d *sender) probing() bool { return d.persist.at != clock.Never }

// startProbing starts probing a window without room while no data in flight can be answered.
func (d *sender) startProbing(now clock.Time) {
	if d.probing() {
		return
	}
	d.rec.At.RTO = clock.Never
	d.persist.count = 0
	d.persist.at = now.Later(d.rec.RTO(0))
}

// stopProbing resumes sending. If the peer did not take the byte of the last probe, that byte is
// sent first. This says nothing about congestion.
func (d *sender) stopProbing(now clock.Time) {
	d.persist.at, d.persist.due = clock.Never, false
	d.rec.LoseFirst(now)
}

// windowProbe sends one byte into a zero window: the first unsent byte, or that of the last probe.
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
	d.smallEnd = d.Una // a probe is short by nature, and holds nothing up
	d.rec.At.Probe = clock.Never
	if open {
		d.persist.at = clock.Never // ordinary data, if less than we like to send
	} else {
		d.rec.At.RTO = clock.Never // the persist timer is in charge
	}
	return true
}

// onPersist probes the peer's window, ever more slowly. A peer that answers may keep its window
// closed for ever. If the peer is silent for too long, onPersist reports false.
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
