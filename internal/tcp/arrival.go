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
	ArrivalEnded                  // behind the peer's FIN: ignored
)

var arrivalNames = [...]string{
	"", "next", "early, kept", "outside the window, dropped", "received before",
	"behind the FIN, ignored",
}

// String returns the kind in a few words.
func (a Arrival) String() string { return arrivalNames[a] }

// Arrival tells what would become of n bytes of text at seq, now.
func (c *Conn) Arrival(seq uint32, n int) Arrival {
	if c.work == nil {
		c.busy()
		defer c.rest()
	}
	if n == 0 || !c.state.synchronized() {
		return ArrivalEmpty
	}
	start := widen(c.rcv.nxt, seq)
	end := start + uint64(n)
	switch {
	case end <= c.rcv.nxt:
		return ArrivalOld
	case !c.state.mayReceive(), c.rcv.fin != 0 && start >= c.rcv.fin:
		return ArrivalEnded
	case start >= c.rcv.limit():
		return ArrivalOutside
	case start <= c.rcv.nxt:
		return ArrivalNext
	case c.rcv.ooo.Covers(c.rxOffset(start), c.rxOffset(end)):
		return ArrivalOld
	}
	return ArrivalEarly
}

// Reassembly is where a connection's receiver stands, in sequence numbers.
type Reassembly struct {
	Next uint32 // RCV.NXT
	// Window is how many bytes from there on the peer was told that it may send.
	Window int
	// Readable is how many bytes in front of RCV.NXT wait for the user.
	Readable int
	// Held is what came early, the lowest first. A FIN has its number there too.
	Held []SACKBlock
	// Closed says that the peer's FIN is in front of RCV.NXT.
	Closed bool
}

// Reassembly returns where the receiver stands. It allocates.
func (c *Conn) Reassembly() Reassembly {
	if c.work == nil {
		c.busy()
		defer c.rest()
	}
	r := Reassembly{
		Next: uint32(c.rcv.nxt), Window: int(c.rcv.edge - c.rcv.nxt), Readable: c.rx.Len(),
		Closed: c.rcv.fin != 0 && c.rcv.nxt > c.rcv.fin,
	}
	hold := func(start, end uint64) {
		if end == c.rcv.fin {
			end++
		}
		r.Held = append(r.Held, SACKBlock{Start: uint32(start), End: uint32(end)})
	}
	base := c.rcv.irs + 1
	for i := range c.rcv.ooo.Len() {
		b := c.rcv.ooo.At(i)
		hold(b.Start+base, b.End+base)
	}
	if b, alone := c.finAlone(); alone {
		hold(b.Start+base, b.End+base)
	}
	return r
}
