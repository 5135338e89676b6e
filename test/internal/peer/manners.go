package peer

import "time"

// Manners is how a peer differs from the RFCs. The zero value is a plain peer. None of them ever
// sends a reset: what is not for its connection is met with silence.
type Manners struct {
	// DropOptions: segments with TCP options fail its checksum, so it never sees them.
	DropOptions bool
	// SynWindow0 announces a window of 0 in the SYN and opens it with the next acknowledgment.
	SynWindow0 bool
	// ISS is its initial sequence number.
	ISS uint32
	// MSS is the most data in its segments; 0: 1024.
	MSS int
	// BareFIN sends the FIN without the ACK flag.
	BareFIN bool
	// RepeatFIN sends the FIN as many times more, asked or not.
	RepeatFIN int
	// AckStorm sends as many empty acknowledgments behind its FIN, and one for each segment that
	// comes from then on.
	AckStorm int
	// Stall closes the window to 0 once, when that many bytes have come, for StallFor, and opens
	// it without a word: only an answer to a probe tells.
	Stall    int
	StallFor time.Duration
	// LoseEach loses every so manieth segment with data that comes; 0: none.
	LoseEach int
	// Loss is the probability that a segment is lost, in each direction.
	Loss float64
	// DataFIN is what it does with a FIN that rides on data.
	DataFIN DataFIN
	// ReadAfter is how long after the arrival of data its program reads; 0: at once. Data that a
	// FIN finds unread is thrown away.
	ReadAfter time.Duration
}

// DataFIN is what a peer does with a segment that carries data and a FIN.
type DataFIN uint8

// The ways that have been seen. The zero value is the RFC's.
const (
	TakesBoth DataFIN = iota
	// IgnoresBoth drops such a segment, however often it comes: the reference host of 2023.
	IgnoresBoth
	// DropsData takes the FIN and skips the data.
	DropsData
	// IgnoresFIN takes and acknowledges the data alone.
	IgnoresFIN
)

// Closing lists what the course's nodes do at the end of a file.
var Closing = map[string]Manners{
	"ignores data with FIN":      {DropOptions: true, MSS: 1360, DataFIN: IgnoresBoth},
	"drops data before FIN":      {DropOptions: true, DataFIN: DropsData},
	"ignores FIN behind data":    {MSS: 1360, DataFIN: IgnoresFIN},
	"reads later than FIN comes": {DropOptions: true, ReadAfter: 2 * time.Millisecond},
}

const (
	window     = 65535
	defaultMSS = 1024
	// retransmit is its one timer.
	retransmit = 40 * time.Millisecond
	// linger is how long after its end it answers what still comes.
	linger = 150 * time.Millisecond
)
