package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// outstanding is what recovery needs while data is in flight, and for a second after. An idle
// connection has none.
type outstanding struct {
	sent    sentQueue
	rack    rack
	board   scoreboard
	ep      episode
	undo    undo
	rounds  rounds
	lasting lasting
}

// lasting is what few connections have, and keep at rest: counts of what was lost, and what is
// still to be told or heard of it.
type lasting struct {
	counts       Counts
	bytesRetrans uint64
	told         uint64 // of sentQueue.lost, to the congestion controller
	spells       spells
	ecn          ecn
	tlp          tlp
}

// rested is what recovery keeps of every flight. What it forgets is over by then: an episode of
// losses, its duplicates' reports, and the round trip in progress.
type rested struct {
	delivered, lost uint64 // of its sentQueue
	patience
	appLimited     bool       // the next rate sample is the application's
	used, usedLast bool       // of its rounds
	measured       bool       // RFC 7661's pipeACK is known: nothing, by now
	unused         clock.Time // since when the window is not used; never: it is
}

// maxSpareRecords is how many a flight keeps that waits for its next connection: four kilobytes.
const maxSpareRecords = 64

// wake begins a flight.
func (v *recovery) wake(now clock.Time) {
	m := &v.rested
	v.outstanding = v.shared.spare.take()
	v.sent.delivered, v.sent.lost = m.delivered, m.lost
	if m.appLimited {
		v.sent.appLimited = m.delivered + 1
	}
	v.rack.patience = m.patience
	if v.filed != nil {
		v.lasting = *v.filed
	}
	v.rounds.window.since, v.rounds.used, v.rounds.usedLast = m.unused, m.used, m.usedLast
	if m.measured {
		v.rounds.window.binAt = now
	}
}

// rest gives the flight back, all but what is worth remembering.
func (v *recovery) rest() {
	v.rested = rested{
		delivered: v.sent.delivered, lost: v.sent.lost,
		patience:   v.rack.patience,
		appLimited: v.sent.appLimited > v.sent.delivered,
		measured:   v.rounds.window.binAt != clock.Never, unused: v.rounds.window.since,
		used: v.rounds.used, usedLast: v.rounds.usedLast,
	}
	v.end()
}

// end gives the flight of a connection back that is over, all but the counts.
func (v *recovery) end() {
	f := v.outstanding
	if f == nil {
		return
	}
	if v.lasting != (lasting{}) || v.filed != nil {
		if v.filed == nil {
			v.filed = new(lasting)
		}
		*v.filed = v.lasting
	}
	v.outstanding = nil
	recs := f.sent.recs
	if len(recs) > maxSpareRecords {
		recs = nil
	}
	*f = outstanding{sent: sentQueue{recs: recs}}
	v.shared.spare.put(f)
}

// notify tells who watches the connection that something has changed.
func (v *recovery) notify(now clock.Time) {
	if v.changed != nil {
		v.changed(now)
	}
}

// stop is called when the connection is over.
func (v *recovery) stop() {
	v.at, v.cc.timed = lossTimers{}, false
	if v.outstanding != nil {
		v.sent = sentQueue{}
	}
}

// spells are the times without an answer: from a first time-out to the next delivery.
type spells struct {
	since clock.Time // never: it answers
	count uint64
	total time.Duration
}

func (s *spells) begin(now clock.Time) {
	if s.since == clock.Never {
		s.since = now
		s.count++
	}
}

func (s *spells) end(now clock.Time) {
	if s.since != clock.Never {
		s.total += now.Sub(s.since)
		s.since = clock.Never
	}
}
