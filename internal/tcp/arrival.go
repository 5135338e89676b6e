package tcp

import "github.com/tidepool-net/tidepool/internal/buffer"

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
	r := &c.rcv
	if n == 0 || !c.state.synchronized() {
		return ArrivalEmpty
	}
	start := widen(r.nxt, seq)
	end := start + uint64(n)
	switch {
	case end <= r.nxt:
		return ArrivalOld
	case !c.state.mayReceive(), r.fin != 0 && start >= r.fin:
		return ArrivalEnded
	case start >= r.limit():
		return ArrivalOutside
	case start <= r.nxt:
		return ArrivalNext
	case r.reassembly != nil && r.reassembly.ooo.Covers(r.offset(start), r.offset(end)):
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
	r := &c.rcv
	view := Reassembly{
		Next: uint32(r.nxt), Window: r.window(), Readable: r.rx.Len(), Closed: r.done(),
	}
	if r.reassembly == nil {
		return view
	}
	hold := func(b buffer.Range) {
		b = r.numbers(b)
		view.Held = append(view.Held, SACKBlock{Start: uint32(b.Start), End: uint32(b.End)})
	}
	for i := range r.reassembly.ooo.Len() {
		hold(r.reassembly.ooo.At(i))
	}
	if b, alone := r.finAlone(); alone {
		hold(b)
	}
	return view
}
