package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Counts are the event counters of a connection.
type Counts struct {
	TotalRetrans    uint64 `json:"retransmits"`
	TotalRTO        uint64 `json:"timeouts"`      // retransmission timeouts that fired
	TailProbes      uint64 `json:"tail_probes"`   // RFC 8985 §7
	WindowProbes    uint64 `json:"window_probes"` // RFC 9293 §3.8.6.1
	LostRetransmits uint64 `json:"lost_retransmits"`
	FastRecoveries  uint64 `json:"fast_recoveries"` // recoveries without a timeout
	Undone          uint64 `json:"undone"`          // recoveries undone because they were spurious
	DupAcks         uint64 `json:"dup_acks"`
	DSACKDups       uint64 `json:"dsack_dups"` // segments that the peer received twice
	ReordSeen       uint64 `json:"reord_seen"` // number of reordering events
	ECNEchoes       uint64 `json:"ecn_echoes"` // window reductions because of ECN
}

// ecn is the state of a sender with ECN (RFC 3168 §6.1.2).
type ecn struct {
	reduced bool       // the window was reduced: the next new data carries CWR
	point   uint64     // SND.NXT at that time; echoes do not count until SND.UNA passes it
	until   clock.Time // with a window of one segment: send no new data before this time
}

// Holds returns the time until which an ECN echo holds back new data, or clock.Never if it does
// not.
func (e *ecn) Holds(now clock.Time) clock.Time {
	if e.until <= now {
		e.until = clock.Never
	}
	return e.until
}

// TakeCWR reports whether the next new data must carry CWR, because the window was reduced.
func (e *ecn) TakeCWR() bool {
	due := e.reduced
	e.reduced = false
	return due
}

// outstanding is the state that recovery needs while data is in flight, and for a second
// afterwards. Idle connections do not have it.
type outstanding struct {
	Record  sentQueue
	rack    rack
	board   scoreboard
	Episode episode
	undo    undo
	rounds  rounds
	Kept    lasting
}

// lasting is the part of outstanding that survives idle times if it is not zero: event counters,
// and the state of ECN and tail loss probes. Few connections have any.
type lasting struct {
	Counts
	bytesRetrans uint64
	reportedLost uint64 // part of sentQueue.lost that control has reported
	timeouts     timeoutPeriods
	ECN          ecn
	TLP          tlp
}

// idleState is the part that every idle connection keeps. A connection is idle only after its
// episodes, duplicate counts and round trip have ended.
type idleState struct {
	delivered, lost uint64 // counts of the sentQueue
	reorderState
	appLimited     bool       // the next rate sample is limited by the application
	used, usedLast bool       // fields of rounds
	measured       bool       // pipeACK of RFC 7661 is known, and has become 0
	unused         clock.Time // when the window was last used; Never: it is in use
}

// maxSpare is how many unused outstanding states the host keeps for reuse.
const maxSpare = 64

// maxSpareRecords is how many records each spare state keeps: four kilobytes.
const maxSpareRecords = 64

// Idle reports whether the connection is idle and has no outstanding state.
func (v *Recovery) Idle() bool { return v.outstanding == nil }

// LeaveIdle allocates the outstanding state.
func (v *Recovery) LeaveIdle(now clock.Time) {
	m := &v.idleState
	h := v.shared
	if n := len(h.spare) - 1; n >= 0 {
		v.outstanding = h.spare[n]
		h.spare[n], h.spare = nil, h.spare[:n]
	} else {
		v.outstanding = new(outstanding)
	}
	v.Record.delivered, v.Record.lost = m.delivered, m.lost
	if m.appLimited {
		v.Record.appLimited = m.delivered + 1
	}
	v.rack.reorderState = m.reorderState
	if v.saved != nil {
		v.Kept = *v.saved
	}
	v.rounds.window.since, v.rounds.used, v.rounds.usedLast = m.unused, m.used, m.usedLast
	if m.measured {
		v.rounds.window.binAt = now
	}
}

// EnterIdle frees the outstanding state of an idle connection, after it has saved the part in
// idleState.
func (v *Recovery) EnterIdle() {
	v.idleState = idleState{
		delivered: v.Record.delivered, lost: v.Record.lost,
		reorderState: v.rack.reorderState,
		appLimited:   v.Record.appLimited > v.Record.delivered,
		measured:     v.rounds.window.binAt != clock.Never, unused: v.rounds.window.since,
		used: v.rounds.used, usedLast: v.rounds.usedLast,
	}
	v.End()
}

// End frees the outstanding state of a closed connection and keeps the counters.
func (v *Recovery) End() {
	f := v.outstanding
	if f == nil {
		return
	}
	if v.Kept != (lasting{}) || v.saved != nil {
		if v.saved == nil {
			v.saved = new(lasting)
		}
		*v.saved = v.Kept
	}
	v.outstanding = nil
	recs := f.Record.recs
	if len(recs) > maxSpareRecords {
		recs = nil
	}
	*f = outstanding{Record: sentQueue{recs: recs}}
	if h := v.shared; len(h.spare) < maxSpare {
		h.spare = append(h.spare, f)
	}
}

func (v *Recovery) notify(now clock.Time) {
	if v.Changed != nil {
		v.Changed(now)
	}
}

// Stop stops all timers when the connection is over.
func (v *Recovery) Stop() {
	v.At, v.CC.Timed = Timers{}, false
	if v.outstanding != nil {
		v.Record = sentQueue{}
	}
}

// timeoutPeriods counts the periods from a first timeout to the next delivery.
type timeoutPeriods struct {
	since clock.Time // when the current period began; never: the peer answers
	count uint64
	total time.Duration
}
