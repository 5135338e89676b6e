package workload

import (
	"math"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Strategy is the document's sender strategy: it decides which segment to send and when, and
// handles acknowledgments. Times are in seconds since 1970, like Python's time.time().
type Strategy interface {
	// NextPacket returns the packet to send now, or false if it has no packet.
	NextPacket(now float64) (Packet, bool)
	// ProcessAck handles an acknowledgment.
	ProcessAck(now float64, a *Ack)
	// Due returns when NextPacket may have a packet without another acknowledgment, or +Inf if
	// never.
	Due() float64
	// State returns the strategy's state.
	State() *SenderState
}

// Packet is a segment to send.
type Packet struct {
	Seq    int
	SentAt float64 // time in the packet, which may differ from the time of sending
	// Count adds the number of acknowledged bytes to the packet.
	Count bool
}

// SenderState is the state of the document's SenderStrategy, with its names where possible.
type SenderState struct {
	SeqNum    int // the next segment to be sent
	NextAck   int // the first unacknowledged segment
	SentBytes int // number of acknowledged segments; the name is the document's

	TotalAcks, DuplicateAcks int
	AckCount                 int // number of acknowledgments of new segments
	Cwnd                     int // congestion window in segments
	Ssthresh                 int // slow start threshold in segments; 0: the strategy has none
	// RTT is the sum of the round trips in seconds, and RTTs is their number. LastRTT is the last
	// one; 0 means that the last acknowledgment had none.
	RTT, LastRTT float64
	RTTs         int

	// Exception is the unhandled exception that ended the sender; empty: no exception.
	Exception string

	current int // number of consecutive duplicates; for the fixed window, of all duplicates
}

// State implements Strategy.
func (l *SenderState) State() *SenderState { return l }

// WindowIsOpen reports whether a new segment may be sent, because fewer segments than the window
// are unacknowledged.
func (l *SenderState) WindowIsOpen() bool { return l.SeqNum-l.NextAck < l.Cwnd }

// measure takes the round-trip time of an acknowledgment of a new segment.
func (l *SenderState) measure(now float64, a *Ack) {
	l.AckCount++
	l.NextAck = max(l.NextAck, a.Seq+1)
	l.LastRTT = now - a.SentAt
	l.RTT += l.LastRTT
	l.RTTs++
}

// epoch is the time.time() of the world's origin: noon of the document's day, 2018-07-18. The
// number of digits of a timestamp affects the size of a packet.
const epoch = 1531915200

// pythonTime returns CPython's time.time() at an instant.
func pythonTime(at clock.Time) float64 {
	return float64(epoch*int64(time.Second)+int64(at)) / 1e9
}

// virtual returns an instant that is later than t by Python's clock. It adds a microsecond, because
// that clock has steps of 238 ns.
func virtual(t float64) clock.Time {
	if math.IsInf(t, 1) {
		return clock.Never
	}
	return clock.Time((t-epoch)*1e9) + clock.Time(time.Microsecond)
}
