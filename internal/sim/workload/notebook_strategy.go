package workload

import (
	"math"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Strategy is the document's sender strategy: it decides when to send which segment, and handles
// acknowledgments. Times are those of Python's time.time(): seconds since 1970.
type Strategy interface {
	// WindowIsOpen reports whether a new segment may be sent.
	WindowIsOpen() bool
	// NextPacket returns what is to be sent at now; false: nothing.
	NextPacket(now float64) (Packet, bool)
	// ProcessAck takes an acknowledgment.
	ProcessAck(now float64, a *Ack)
	// Due is when NextPacket may have something though no acknowledgment has come; +Inf:
	// never.
	Due() float64
	// Book is what the strategy keeps of what happens.
	Book() *Ledger
}

// Packet is a segment to send.
type Packet struct {
	Seq    int
	SentAt float64 // what it says, which is not always when it leaves
	// Count puts the bytes acknowledged so far into the packet, too.
	Count bool
}

// Ledger is what the document's SenderStrategy keeps, under its names where they are to be
// had.
type Ledger struct {
	SeqNum    int // the next segment to be sent
	NextAck   int // the first that is not acknowledged
	SentBytes int // acknowledged: the name is the document's

	TotalAcks, DuplicateAcks int
	AckCount                 int // acknowledgments that said something new
	Cwnd                     int // segments
	Ssthresh                 int // segments; 0: the strategy has none
	// RTT is the sum of RTTs round trips, in seconds, and LastRTT the last one; 0: the last
	// acknowledgment gave none.
	RTT, LastRTT float64
	RTTs         int

	// Died is the exception that ended the sender, which has none to handle it; empty: none.
	Died string

	current int // duplicates in a row, or in the fixed window's case at all
}

// Book implements Strategy.
func (l *Ledger) Book() *Ledger { return l }

// WindowIsOpen implements Strategy: as long as the next segment is less than a window ahead.
func (l *Ledger) WindowIsOpen() bool { return l.SeqNum-l.NextAck < l.Cwnd }

// measure takes the round trip of an acknowledgment that said something new.
func (l *Ledger) measure(now float64, a *Ack) {
	l.AckCount++
	l.NextAck = max(l.NextAck, a.Seq+1)
	l.LastRTT = now - a.SentAt
	l.RTT += l.LastRTT
	l.RTTs++
}

// epoch is the world's origin as Python's time.time() would have it: noon of the day of the
// document, 2018-07-18. The digits of a time stamp are part of what a packet weighs.
const epoch = 1531915200

// pythonTime is time.time() of CPython at an instant.
func pythonTime(at clock.Time) float64 {
	return float64(epoch*int64(time.Second)+int64(at)) / 1e9
}

// virtual returns a time that is later than t by Python's clock, which has steps of 238 ns: a
// microsecond later.
func virtual(t float64) clock.Time {
	if math.IsInf(t, 1) {
		return clock.Never
	}
	return clock.Time((t-epoch)*1e9) + clock.Time(time.Microsecond)
}
