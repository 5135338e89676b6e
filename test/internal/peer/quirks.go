package peer

import "time"

// Quirks are deviations from the RFCs. The zero value is a plain peer. No peer ever sends a reset:
// it ignores segments of other connections.
type Quirks struct {
	// DropOptions drops segments with TCP options, as if their checksum were wrong.
	DropOptions bool
	// SynWindow0 advertises a window of 0 in the SYN and opens it with the next acknowledgment.
	SynWindow0 bool
	// ISS is the initial sequence number.
	ISS uint32
	// MSS limits the data in a segment; 0: 1024.
	MSS int
	// BareFIN sends the FIN without the ACK flag.
	BareFIN bool
	// RepeatFIN is the number of additional FINs, sent unprompted.
	RepeatFIN int
	// AckStorm is the number of empty acknowledgments sent after the FIN. From then on, the peer
	// answers every received segment with another one.
	AckStorm int
	// Stall closes the window to 0 once, after that many received bytes, for StallFor. The peer
	// does not announce that it opens again; it only answers probes.
	Stall    int
	StallFor time.Duration
	// LoseEach drops every LoseEach-th received segment with data; 0: no drops.
	LoseEach int
	// Loss is the probability that a segment is lost, in each direction.
	Loss float64
	// DataFIN selects how a FIN in a segment with data is handled.
	DataFIN DataFIN
	// ReadAfter delays the program's read after data arrives; 0: no delay. A FIN discards data that
	// the program has not read.
	ReadAfter time.Duration
}

// DataFIN selects how a peer handles a segment with data and a FIN.
type DataFIN uint8

// Variants seen in other nodes. The zero value follows the RFC.
const (
	TakesBoth DataFIN = iota
	// IgnoresBoth drops such a segment, also if it is retransmitted, like the reference host of
	// 2023.
	IgnoresBoth
	// DropsData accepts the FIN and skips the data.
	DropsData
	// IgnoresFIN accepts and acknowledges only the data.
	IgnoresFIN
)

// Closing lists how the course's nodes behave at the end of a file.
var Closing = map[string]Quirks{
	"ignores data with FIN":       {DropOptions: true, MSS: 1360, DataFIN: IgnoresBoth},
	"drops data before FIN":       {DropOptions: true, DataFIN: DropsData},
	"ignores FIN behind data":     {MSS: 1360, DataFIN: IgnoresFIN},
	"reads after the FIN arrives": {DropOptions: true, ReadAfter: 2 * time.Millisecond},
}

const (
	window     = 65535
	defaultMSS = 1024
	// rto is the timeout of the only timer.
	rto = 40 * time.Millisecond
	// linger is how long the peer answers segments after the connection's end. lossyLinger is for
	// connections with losses: if the last ACK is lost, the node repeats its FIN after a timeout.
	linger      = 150 * time.Millisecond
	lossyLinger = 2 * time.Second
)
