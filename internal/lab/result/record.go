package result

import "time"

// Record is a time series of one run. Times count from its beginning.
type Record struct {
	Title    string
	Duration time.Duration
	// RTT is the path's round trip without a queue, and Rate what the bottleneck sends in bits
	// a second, on the average; 0: there is no limit.
	RTT   time.Duration
	Rate  float64
	Flows []FlowRecord
	Links []LinkRecord
	// Objects are the transferred objects, if the flows transfer objects.
	Objects []Object
	Marks   []Mark
	// Notes say what the record leaves out.
	Notes []string
}

// FlowRecord is one flow of a Record.
type FlowRecord struct {
	Name, Label string
	Start       time.Duration
	RTT         time.Duration // of its own path, without a queue
	MSS         int           // bytes
	Upward      bool          // its data goes over the up link
	Own         []string      `json:",omitempty"` // what a script recorded: the names of Sample.Own
	Samples     []Sample      // each change at the sender
	Segments    []Segment     // as the sender sent and received them
	Progress    []Point       // bytes that the receiving application has got
}

// Sample is the state of a sender at an instant, with the names of ss -ti. Missing values are 0.
type Sample struct {
	At                        time.Duration
	Cwnd, Ssthresh            int           // bytes; an Ssthresh of 0: not set yet
	RTT, SRTT, RTTVar, MinRTT time.Duration // RTT is the sample that came now; 0: none
	RTO                       time.Duration
	Unacked                   int // bytes sent and not acknowledged
	InFlight                  int // bytes thought to be in the network
	Sacked, Lost, Retrans     int // segments outstanding
	SendWindow                int // bytes
	BytesAcked, BytesSent     uint64
	Retransmits, Timeouts     uint64 // so far
	DupAcks                   uint64 // so far
	DeliveryRate, PacingRate  int64  // bytes a second
	State                     string // open, recovery or loss
	// Own are a script's numbers, by the flow's Own. One that was not recorded yet is no number,
	// and so are those that a short list lacks.
	Own []float64
}

// Segment is one segment at the sender of a flow.
type Segment struct {
	At time.Duration
	// Received says that it is the receiver's.
	Received bool
	// Seq is the stream offset of its first byte, Len how many there are, Ack what it
	// acknowledges, Window the receive window that it offers.
	Seq    uint64
	Len    int
	Ack    uint64
	Window int
	// Again says that its data was sent before.
	Again bool
	SACK  [][2]uint64
}

// LinkRecord is one direction of the bottleneck.
type LinkRecord struct {
	Name   string  // down or up
	Rate   float64 // bit/s, on the average
	Limit  int     // of the queue, in bytes; 0: none in bytes
	Queue  string  // in mahimahi's words
	Rates  []Point // bit/s from then on, if the rate changes by a schedule
	Events []LinkEvent
}

// LinkEvent is what happened to a packet, or to a chance to send one.
type LinkEvent struct {
	At     time.Duration
	Kind   LinkEventKind
	Flow   int           // of the packet; -1: none
	Bytes  int           // of the packet, or of so many that a thinned event stands for
	Wait   time.Duration // in the queue, of a departure
	Queued int           // bytes in the queue, after it
	Why    string        // of a drop
}

// LinkEventKind is what happened.
type LinkEventKind byte

// The kinds, by the letters of mahimahi's logs.
const (
	Arrival     LinkEventKind = '+'
	Departure   LinkEventKind = '-'
	Drop        LinkEventKind = 'd'
	Opportunity LinkEventKind = '#'
	Marked      LinkEventKind = 'm'
)

// Point is a value at an instant.
type Point struct {
	At    time.Duration
	Value float64
}

// Object is something transferred: from when it was asked for to when it was complete.
type Object struct {
	Flow       string
	Name       string
	Size       int
	Start, End time.Duration
	Done       bool
}

// Mark is a moment to be seen in every figure over time, such as a change of the rate.
type Mark struct {
	At   time.Duration
	Text string
}
