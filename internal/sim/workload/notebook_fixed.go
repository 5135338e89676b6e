package workload

import "math"

// fixedWindow is the document's FixedWindowStrategy: a window that never changes. After every third
// duplicate, of any segment, it goes back to the missing one. It has no timeout, so it stays silent
// after the loss of a whole window.
type fixedWindow struct {
	SenderState
	// unacknowledged contains the segments that no acknowledgment has named. As in the document, a
	// segment stays if only a later one is acknowledged, so its own acknowledgment still counts as
	// new.
	unacknowledged map[int]struct{}
}

// NewFixedWindow returns the strategy with a window of cwnd segments.
func NewFixedWindow(cwnd int) Strategy {
	return &fixedWindow{SenderState: SenderState{Cwnd: cwnd}, unacknowledged: map[int]struct{}{}}
}

func (f *fixedWindow) NextPacket(now float64) (Packet, bool) {
	if !f.WindowIsOpen() {
		return Packet{}, false
	}
	p := Packet{Seq: f.SeqNum, SentAt: now, Count: true}
	f.unacknowledged[f.SeqNum] = struct{}{}
	f.SeqNum++
	return p, true
}

func (f *fixedWindow) ProcessAck(now float64, a *Ack) {
	f.TotalAcks++
	f.LastRTT = 0
	if _, ok := f.unacknowledged[a.Seq]; !ok {
		f.DuplicateAcks++
		if f.current++; f.current == 3 {
			f.current = 0
			f.SeqNum = a.Seq + 1
		}
		return
	}
	delete(f.unacknowledged, a.Seq)
	f.SentBytes += a.Bytes
	f.measure(now, a)
}

func (f *fixedWindow) Due() float64 {
	if f.WindowIsOpen() {
		return 0
	}
	return math.Inf(1)
}
