package tcp

// Arrival is what becomes of a segment's text when it arrives: the three kinds
// of founding document 001, and what it left out.
type Arrival uint8

// The kinds of arrival.
const (
	ArrivalEmpty   Arrival = iota // no text
	ArrivalNext                   // begins at RCV.NXT: it can be read at once
	ArrivalEarly                  // within the window: kept until the gap is filled
	ArrivalOutside                // beyond the window: dropped
	ArrivalOld                    // received before
)

var arrivalNames = [...]string{
	"", "next", "early, kept", "outside the window, dropped", "received before",
}

// String returns the kind in a few words.
func (a Arrival) String() string { return arrivalNames[a] }

// Arrival tells what would become of n bytes of text at seq, now.
func (c *Conn) Arrival(seq uint32, n int) Arrival {
	if n == 0 || !c.state.synchronized() {
		return ArrivalEmpty
	}
	start := widen(c.rcv.nxt, seq)
	end := start + uint64(n)
	switch {
	case end <= c.rcv.nxt:
		return ArrivalOld
	case start >= c.rcv.limit():
		return ArrivalOutside
	case start <= c.rcv.nxt:
		return ArrivalNext
	case c.rcv.ooo.Covers(c.rxOffset(start), c.rxOffset(end)):
		return ArrivalOld
	}
	return ArrivalEarly
}
