package recovery

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Recovery is the loss detection and congestion control of one connection. It records the segments
// in flight, decides which are lost and how much may be in flight, and runs the retransmission
// timers.
type Recovery struct {
	shared       *Host
	snd          *Space
	strategy     *strategy
	CC           Algorithm
	RTT          Estimator
	At           Timers
	Retries      int32 // timeouts since the last answer
	Backoff      uint8 // doublings of the RTO (RFC 6298 §5.5)
	Paced        bool  // the sender spreads a window over the round trip
	Late         bool  // postponeLate has postponed a late timer
	losses       losses
	LastSent     clock.Time // when a SYN, data or a FIN was last sent
	rate         rate
	Pacer        Pacer
	Changed      func(now clock.Time) // the connection's probe; may be nil
	*outstanding                      // nil: the connection is idle
	idleState    idleState
	saved        *lasting // Kept while the connection is idle; nil: all zero
}

// Timers are the deadlines of a recovery.
type Timers struct {
	RTO     clock.Time // retransmission, of the SYN too (RFC 6298)
	Probe   clock.Time // tail loss probe (RFC 8985 §7)
	Reorder clock.Time // RACK's reordering window (RFC 8985 §6.2)
}

// Space is the part of the send sequence space that a sender and its recovery share: SND.UNA and
// SND.NXT (RFC 9293 §3.3.1), and the payload of a full segment in bytes.
type Space struct {
	Una, Nxt uint64
	MSS      int
}

// Host is the state that the recoveries of a host share.
type Host struct {
	Options
	Retransmits uint64     // segments, of all connections
	lossAt      clock.Time // when one of the connections last lost a segment
	spare       []*outstanding
	scratch     Ack // the Ack in progress
	// Arguments of the controllers' methods, reused for each call.
	ack         congestion.Ack
	loss        congestion.Loss
	lostSegment congestion.LostSegment
	exit        congestion.Exit
	restart     congestion.Restart
}

// Init prepares a connection that has not sent anything.
func (v *Recovery) Init(h *Host, snd *Space) {
	v.shared, v.snd, v.CC.Name, v.Paced = h, snd, h.Congestion, h.Pacing
	v.RTT.RTO, v.idleState.mult = h.RTOInitial, 1
	v.strategy = choose(h.Strategy, false)
}

// maxSYNTimeouts is how many timeouts of our SYN or SYN-ACK leave the initial window unchanged. RFC
// 5681 §3.1 allows only one segment after a lost SYN. But an RTO of 1 s expires spuriously on slow
// paths, so RFC 6928 §2, Linux and this host wait for a second timeout.
const maxSYNTimeouts = 1

// Establish is called when the handshake is complete. sack says that the peer sends selective
// acknowledgments, and again that the SYN was retransmitted. If it was sent only once, its round
// trip is the first sample (RFC 6298 §3, Karn's algorithm).
func (v *Recovery) Establish(now clock.Time, sack, again bool) {
	v.losses.ofSYNs = v.Retries > maxSYNTimeouts
	v.At.RTO, v.Retries, v.Backoff = clock.Never, 0, 0
	v.strategy = choose(v.shared.Strategy, sack)
	if at := v.shared.lossAt; at != clock.Never && now.Sub(at) < lossMemory {
		// RFC 9040 §3.1: use the losses that other connections have seen lately. A short connection
		// may send no data after its only loss that would reveal it.
		v.losses.freeAt = lossFreeAfter
	}
	if again {
		// RFC 6298 §5.7: after a lost SYN the RTO is 3 s, three times the RFC's initial RTO. We
		// use three times ours.
		v.noteLoss(now)
		v.RTT.RTO = min(3*v.shared.RTOInitial, v.shared.RTOMax)
	} else if v.LastSent != clock.Never {
		v.RTT.Sample(now, now.Sub(v.LastSent), 1, &v.shared.Options)
	}
}

// Pipe estimates the bytes in flight (SetPipe, RFC 6675 §4), from counters.
func (v *Recovery) Pipe() int { return max(0, v.Record.bytes[inFlight]-v.Episode.dupBytes) }

// ResendLarge marks all segments with more than mss bytes for retransmission, because the path's
// MTU has shrunk. This is no sign of congestion (RFC 1191 §6.4).
func (v *Recovery) ResendLarge(mss int) {
	v.Record.resendLonger(mss)
	v.Episode.force = v.Record.Lost()
}

// ResendProbe marks the MTU probe at seq, which a router reports as too big, for retransmission. It
// returns false if no probe starts at seq.
func (v *Recovery) ResendProbe(seq uint64) bool {
	id := v.Record.find(seq)
	if !v.Record.has(id) || v.Record.at(id).flags&MTUProbe == 0 {
		return false
	}
	rec := v.Record.at(id)
	rec.flags &^= MTUProbe
	if rec.place == inFlight {
		v.Record.move(id, rec, lost)
		v.Episode.force = true
	}
	return true
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// Push records a new segment with size sequence numbers, FIN included. The caller moves SND.NXT.
func (v *Recovery) Push(now clock.Time, seq uint64, size int, flags Flags) {
	v.Record.push(now, seq, size, flags)
	if e := &v.Episode; e.forward == forwardNew {
		e.fresh -= size
	}
	v.Episode.spend(size)
}

// Arm starts the timers for new data (RFC 6298 §5.1). It reports whether the RTO was not running.
func (v *Recovery) Arm(now clock.Time) (first bool) {
	if first = v.At.RTO == clock.Never; first {
		v.ArmRTO(now)
	}
	v.armProbe(now)
	return first
}

// Allow returns allowed, or at least one segment if nothing is in flight. remainder allows the
// sender to use less than a segment of the peer's window. It is set for a tail loss probe on a path
// without losses, because RFC 8985 §7.3 prefers new data.
func (v *Recovery) Allow(allowed, waiting int) (n int, remainder bool) {
	if allowed < min(v.snd.MSS, waiting) && v.Pipe() == 0 && v.Episode.kind != recovering {
		allowed = v.snd.MSS
	}
	return allowed, v.Kept.TLP.Due && v.losses.free()
}

// Span is data to send: N bytes in segments of MSS bytes, perhaps with the FIN.
type Span struct {
	Seq    uint64
	N, MSS int
	FIN    bool
}

// Spare chooses a segment to retransmit that is not known to be lost, if recovery has room, and
// reports whether there is one. The caller has no new data to send.
func (v *Recovery) Spare(now clock.Time) bool {
	if v.Episode.kind != recovering || v.Allowance() < v.snd.MSS ||
		v.Pacer.Holds(now) != clock.Never {
		return false
	}
	id, ok := v.strategy.spare(v)
	if ok {
		v.Record.move(id, v.Record.at(id), lost)
	}
	return ok
}

// LoseFirst marks the first segment in flight for retransmission. It is a window probe that the
// peer has not accepted, and the window is open now. This is no sign of congestion.
func (v *Recovery) LoseFirst(now clock.Time) {
	if q := &v.Record; !q.Empty() {
		if rec := q.at(q.first); rec.place == inFlight {
			q.move(q.first, rec, lost)
		}
		v.ArmRTO(now)
	}
}

// RoomForMTUProbe reports whether a probe of n bytes may be sent now, where need is the size of the
// probe and the data after it. hold asks the caller to send nothing else until acknowledgments have
// made room for it.
func (v *Recovery) RoomForMTUProbe(n, need int) (room, hold bool) {
	if !v.Episode.Open() || v.Record.count[sacked] > 0 || v.CC.Cwnd() < need {
		return false, false
	}
	if v.Allowance() < n {
		return false, v.Pipe() > 0
	}
	return true, false
}

// ProbesTail reports whether the strategy sends tail loss probes (RFC 8985 §7).
func (v *Recovery) ProbesTail() bool { return v.strategy.probes }

// MayResend reports whether congestion control allows the first lost segment to be retransmitted.
func (v *Recovery) MayResend() bool {
	q := &v.Record
	if q.uneven {
		v.Recut(v.snd.MSS) // joins short pieces, which were cut in flight
	}
	return v.Episode.force ||
		v.Episode.forward != forwardFirst &&
			(v.Allowance() >= q.at(q.lists[lost].head).payload() || v.Pipe() == 0)
}

// Resend records the retransmission of lost segments: adjacent segments of equal size, at most room
// of them.
func (v *Recovery) Resend(now clock.Time, room int) Span {
	q, left := &v.Record, v.Allowance()
	id := q.lists[lost].head
	rec := q.at(id)
	s := Span{Seq: rec.seq, MSS: min(rec.payload(), v.snd.MSS)}
	room = max(room, ceilDiv(rec.payload(), max(s.MSS, 1))) // one record is never cut
	v.undo.noteResent(now)
	for again := uint64(1); ; again++ {
		s.N += rec.payload()
		left -= int(rec.size)
		s.FIN = s.FIN || rec.flags&FIN != 0
		full, end := rec.payload() == s.MSS, rec.end()
		q.resent(now, id, rec)
		v.undo.sent(rec.seq, end)
		v.Episode.spend(int(rec.size))
		id = q.lists[lost].head
		if q.lists[lost].n > 0 {
			rec = q.at(id)
		}
		if q.lists[lost].n == 0 || !full || v.Episode.forward != forwardOff ||
			(s.N+s.MSS-1)/s.MSS >= room ||
			rec.seq != end || rec.payload() > s.MSS || rec.payload() > left {
			v.countRetransmitted(again, s.N)
			break
		}
	}
	if s.Seq == v.snd.Una || v.At.RTO == clock.Never {
		v.ArmRTO(now)
	}
	v.armProbe(now)
	return s
}

// repeat records the retransmission of a segment that is not known to be lost. It reports false if
// the segment has arrived.
func (v *Recovery) repeat(now clock.Time, id uint32) (Span, bool) {
	rec := v.Record.at(id)
	if rec.place == sacked {
		return Span{}, false
	}
	n := rec.payload()
	s := Span{rec.seq, n, min(max(n, 1), v.snd.MSS), rec.flags&FIN != 0}
	if v.Episode.kind != steady {
		v.undo.noteResent(now)
		v.undo.sent(rec.seq, rec.end())
		v.Episode.spend(int(rec.size))
	}
	v.Record.resent(now, id, rec)
	v.countRetransmitted(1, n)
	return s, true
}

// RepeatByte records the retransmission of the first byte in flight, as a window probe.
func (v *Recovery) RepeatByte(now clock.Time) Span {
	rec := v.Record.at(v.Record.first)
	v.Record.resent(now, v.Record.first, rec)
	n := min(rec.payload(), 1)
	v.countRetransmitted(1, n)
	return Span{rec.seq, n, v.snd.MSS, rec.flags&FIN != 0 && n == rec.payload()}
}

func (v *Recovery) countRetransmitted(segments uint64, n int) {
	v.Kept.Counts.TotalRetrans += segments
	v.Kept.bytesRetrans += uint64(n)
	v.rounds.window.resent += n
	v.shared.Retransmits += segments
}

// Recut splits and joins the records to match the current MSS.
func (v *Recovery) Recut(mss int) {
	move := v.Record.recut(mss)
	b := &v.board
	b.judged, b.highest, b.tried = move(b.judged), move(b.highest), move(b.tried)
	b.above = 0
	for id := b.judged; id != v.Record.next; id++ {
		if v.Record.at(id).place == sacked {
			b.above++
		}
	}
}
