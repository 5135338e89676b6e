package result

import "time"

// Record is a time series of one run. Times count from the start of the run.
type Record struct {
	Title    string
	Duration time.Duration
	// RTT is the path's round-trip time without a queue. Rate is the mean rate of the bottleneck in
	// bits per second; 0: unlimited.
	RTT   time.Duration
	Rate  float64
	Flows []FlowRecord
	Links []LinkRecord
	// Objects are the transferred objects, if the flows transfer objects.
	Objects []Object
	Marks   []Mark
	// Notes describe what the record omits.
	Notes []string
}

// FlowRecord is one flow of a Record.
type FlowRecord struct {
	Name, Label string
	Start       time.Duration
	RTT         time.Duration // round-trip time of the flow's own path, without a queue
	MSS         int           // maximum segment size in bytes
	Upward      bool          // the data uses the up link
	Own         []string      `json:",omitempty"` // names of the values in Sample.Own
	Samples     []Sample      // one sample for each change at the sender
	Segments    []Segment     // segments that the sender sent and received
	Progress    []Point       // bytes that the receiving application has read
}

// Sample is the state of a sender at an instant, with the names of ss -ti. Missing values are 0.
type Sample struct {
	At                        time.Duration
	Cwnd, Ssthresh            int           // in bytes; an Ssthresh of 0: not set yet
	RTT, SRTT, RTTVar, MinRTT time.Duration // RTT is the current measurement; 0: no measurement
	RTO                       time.Duration
	Unacked                   int // bytes sent but not acknowledged
	InFlight                  int // estimate of the bytes in the network
	Sacked, Lost, Retrans     int // numbers of outstanding segments
	SendWindow                int // send window in bytes
	BytesAcked, BytesSent     uint64
	Retransmits, Timeouts     uint64 // counted since the start
	DupAcks                   uint64 // counted since the start
	DeliveryRate, PacingRate  int64  // rates in bytes per second
	State                     string // one of open, recovery and loss
	// Own are the variables that a script recorded, in the order of the flow's Own. Missing values,
	// also at the end of a short list, are NaN.
	Own []float64
}

// Segment is one segment at the sender of a flow.
type Segment struct {
	At time.Duration
	// Received means that the receiver sent the segment.
	Received bool
	// Seq is the stream offset of the segment's first byte, and Len is the number of bytes. Ack is
	// the acknowledgment, and Window is the advertised receive window.
	Seq    uint64
	Len    int
	Ack    uint64
	Window int
	// Again means that the segment is a retransmission.
	Again bool
	SACK  [][2]uint64
}

// LinkRecord is one direction of the bottleneck.
type LinkRecord struct {
	Name   string  // direction: down or up
	Rate   float64 // mean rate in bit/s
	Limit  int     // limit of the queue in bytes; 0: no limit in bytes
	Queue  string  // the queue in mahimahi's syntax
	Rates  []Point // bit/s from a time on, if a schedule changes the rate
	Events []LinkEvent
}

// LinkEvent is an event of a packet on a link, or an opportunity to send one.
type LinkEvent struct {
	At     time.Duration
	Kind   LinkEventKind
	Flow   int           // flow of the packet; -1: no flow
	Bytes  int           // size of the packet, or of all packets that a thinned event stands for
	Wait   time.Duration // queueing delay of a packet that departs
	Queued int           // number of bytes in the queue after the event
	Why    string        // reason of the drop
}

// LinkEventKind is the kind of an event.
type LinkEventKind byte

// These are the kinds, with the letters of mahimahi's logs, which do not have Marked.
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

// Object is a transferred object, with the times when it was requested and complete.
type Object struct {
	Flow       string
	Name       string
	Size       int
	Start, End time.Duration
	Done       bool
}

// Mark is an instant that all figures over time show, such as a change of the rate.
type Mark struct {
	At   time.Duration
	Text string
}
