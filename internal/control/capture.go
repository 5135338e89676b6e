package control

import "time"

// Record captures packets until ctx ends, Count have come or the node ends; answer Captured. What
// reads too slowly loses packets, which are counted, and never holds up the node.
type Record struct {
	Iface string `json:"iface,omitempty"` // a name, a number, "lo", or "all", as the empty string
	// Filter has the packets that it fits kept, in pcap-filter(7)'s words: "tcp port 80 and not
	// host 10.0.0.1", "tcp[syn]", "drop". Empty: all.
	Filter  string `json:"filter,omitempty"`
	Snaplen int    `json:"snaplen,omitempty"` // bytes kept of a packet; 0: all
	Count   uint64 `json:"count,omitempty"`   // packets after which it ends; 0: none
	// File has the node write them there, as pcapng, instead of giving them to Piece.
	File string `json:"file,omitempty"`
	// FileSize is after how many bytes another file is begun, with a number behind its name;
	// 0: none. Files is how many of them are kept, the oldest is deleted; 0: all.
	FileSize int64 `json:"file_size,omitempty"`
	Files    int   `json:"files,omitempty"`
	// Overwrite lets it replace a capture that has the name. Files of other kinds stay.
	Overwrite bool `json:"overwrite,omitempty"`
	// Lines has each packet described to Packet instead.
	Lines bool `json:"lines,omitempty"`
	// Begun, if set, is called when it has begun: what comes from now on is captured.
	Begun func() `json:"-"`
	// Piece, if set, is called with the next bytes of the pcapng stream.
	Piece func([]byte) `json:"-"`
	// Packet, if set, is called with every packet, if Lines is set.
	Packet func(Packet) `json:"-"`
}

func (Record) answers(Captured) {}

// Packet is one packet as a capture of Lines tells of it.
type Packet struct {
	At     time.Time `json:"at"`
	Iface  string    `json:"iface"`
	Sent   bool      `json:"sent"`            // false: received
	Length int       `json:"length"`          // bytes on the wire
	Text   string    `json:"text"`            // one line, in tcpdump's manner
	Drop   string    `json:"drop,omitempty"`  // why it went no further
	State  string    `json:"state,omitempty"` // its connection's: "cwnd=10 ssthresh=64 state=ESTAB"
}

// Captured is what became of a capture.
type Captured struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`  // of the packets, as they were on the wire
	Missed  uint64 `json:"missed"` // packets that the reader was too slow for
	File    string `json:"file,omitempty"`
	Files   int    `json:"files,omitempty"` // that were begun
	// Problem is why it ended before it was told to: the disk is full.
	Problem string `json:"problem,omitempty"`
}

// StartCapture begins a Record into a file that goes on until StopCapture; answer Capturing.
type StartCapture struct {
	Iface     string `json:"iface,omitempty"` // these are as in Record
	Filter    string `json:"filter,omitempty"`
	Snaplen   int    `json:"snaplen,omitempty"`
	Count     uint64 `json:"count,omitempty"`
	File      string `json:"file"`
	FileSize  int64  `json:"file_size,omitempty"`
	Files     int    `json:"files,omitempty"`
	Overwrite bool   `json:"overwrite,omitempty"`
}

func (StartCapture) answers(Capturing) {}

// StopCapture ends a capture that StartCapture began; answer Captured.
type StopCapture struct {
	ID int `json:"id"` // 0: the one that there is
}

func (StopCapture) answers(Captured) {}

// Captures asks which captures and traces there are; answer []Capturing.
type Captures struct{}

func (Captures) answers([]Capturing) {}

// Capturing is a capture or a trace under way.
type Capturing struct {
	ID      int       `json:"id"`   // 0: it is not one of StartCapture
	Kind    string    `json:"kind"` // capture, trace
	Iface   string    `json:"iface"`
	Filter  string    `json:"filter"`
	File    string    `json:"file"`
	Since   time.Time `json:"since"`
	Packets uint64    `json:"packets"` // given to its reader
	Missed  uint64    `json:"missed"`
}

// Trace follows one TCP connection, segment by segment, until it has ended, Count have come or ctx
// ends; answer Traced. A reader that is too slow loses segments, which are counted.
type Trace struct {
	// SID is a connection; of a listener: the next that comes to its port.
	SID int `json:"sid"`
	// Filter, if there is one, chooses in the place of SID: the connection of the first segment
	// that it fits, in the words of Record. It may be one that is forwarded.
	Filter string `json:"filter,omitempty"`
	Count  uint64 `json:"count,omitempty"`
	// Recorded has it begin with what the connection's recorder has, if tcp.recorder is set: that
	// does not count.
	Recorded bool `json:"recorded,omitempty"`
	// Drops has it tell only of what went no further.
	Drops bool `json:"drops,omitempty"`
	// Begun, if set, is called when it has begun.
	Begun func() `json:"-"`
	// Segment, if set, is called with each segment.
	Segment func(TracedSegment) `json:"-"`
}

func (Trace) answers(Traced) {}

// Traced is what became of a Trace.
type Traced struct {
	Segments uint64 `json:"segments"`
	Missed   uint64 `json:"missed"`
}

// TracedSegment is one segment of a connection. Sequence numbers count from 0 at the SYN, or from
// 1 at the first byte that was seen if that was not and the connection is another node's.
type TracedSegment struct {
	At    time.Time     `json:"at"`
	Since time.Duration `json:"since_ns"` // the one before
	SID   int           `json:"sid"`      // -1: it has no number, or is another node's
	Iface string        `json:"iface"`
	// Left and Right are the two ends; Left is the node's own, or that of who was heard first.
	Left  string `json:"left"`
	Right string `json:"right"`
	Sent  bool   `json:"sent"`  // from Left to Right
	Flags string `json:"flags"` // in tcpdump's letters: "S", "P.", "F."
	Seq   uint64 `json:"seq"`
	Ack   uint64 `json:"ack"` // meaningful with "." among the flags
	// WireSeq is the sequence number as the segment itself has it.
	WireSeq uint32 `json:"wire_seq"`
	// Length is in bytes of text, Window in bytes, scaled.
	Length int     `json:"length"`
	Window int     `json:"window"`
	SACK   []Range `json:"sack,omitempty"`
	// MSS and Scale are those of a SYN; Scale -1: no such option.
	MSS    int    `json:"mss,omitempty"`
	Scale  int    `json:"scale,omitempty"`
	TSVal  uint32 `json:"tsval,omitempty"`
	TSEcr  uint32 `json:"tsecr,omitempty"`
	ECN    string `json:"ecn,omitempty"`  // of the IP header: ect0, ect1, ce
	Drop   string `json:"drop,omitempty"` // why it went no further
	Marks  []Mark `json:"marks,omitempty"`
	DupAck int    `json:"dup_ack,omitempty"` // the how many-eth of its number

	Moment
	// Missed is how many segments could not be told between the one before and this one.
	Missed uint64 `json:"missed,omitempty"`
}

// Moment is what a connection was like: as a segment left it, or before one was looked at.
type Moment struct {
	State      string        `json:"state,omitempty"`
	Recovery   string        `json:"recovery,omitempty"` // open, recovery or loss
	Congestion string        `json:"congestion,omitempty"`
	Cwnd       int           `json:"cwnd,omitempty"`     // bytes
	Ssthresh   int           `json:"ssthresh,omitempty"` // bytes; 0: not set yet
	Pipe       int           `json:"pipe,omitempty"`     // bytes in flight
	SendMSS    int           `json:"snd_mss,omitempty"`
	RTT        time.Duration `json:"rtt_ns,omitempty"`
}

// Range is a range of sequence numbers, as TracedSegment counts them.
type Range struct {
	Begin uint64 `json:"begin"`
	End   uint64 `json:"end"`
}

// Mark is something about a segment that is worth a look.
type Mark string

// The marks.
const (
	MarkAgain      Mark = "retransmission"  // its text was sent before
	MarkGap        Mark = "gap"             // something is missing in front of it
	MarkFills      Mark = "fills a gap"     // late, but not seen before
	MarkDupAck     Mark = "dup ack"         // RFC 5681 §2
	MarkZeroWindow Mark = "zero window"     // no room
	MarkWindow     Mark = "window update"   // room again, or more
	MarkProbe      Mark = "window probe"    // of a window that is shut
	MarkKeepalive  Mark = "keep-alive"      // one number before what comes next
	MarkDSACK      Mark = "duplicate SACK"  // RFC 2883
	MarkEcho       Mark = "congestion echo" // ECE, RFC 3168
	MarkReduced    Mark = "window reduced"  // CWR
)

// Samples tells of a connection's state, over and over, until it has ended or ctx ends; answer
// Sampled.
type Samples struct {
	SID int `json:"sid"`
	// Every is the least time from one to the next; 0: 100 ms. A loss, a time-out and a change of
	// state are told at once. Negative: all there are.
	Every time.Duration `json:"every_ns,omitempty"`
	// Begun, if set, is called when it has begun.
	Begun func() `json:"-"`
	// Sample, if set, is called with each.
	Sample func(Sample) `json:"-"`
}

func (Samples) answers(Sampled) {}

// Sampled is what became of Samples.
type Sampled struct {
	Samples uint64 `json:"samples"`
	Missed  uint64 `json:"missed"` // that the reader was too slow for
}

// Sample is a connection's state at one instant. Bytes are counted from the connection's first.
type Sample struct {
	At         time.Time `json:"at"`
	SID        int       `json:"sid"`
	State      string    `json:"state"`
	Recovery   string    `json:"recovery"`
	Congestion string    `json:"congestion"`
	Cwnd       int       `json:"cwnd"`     // bytes
	Ssthresh   int       `json:"ssthresh"` // bytes; 0: not set yet
	Pipe       int       `json:"pipe"`     // bytes in flight
	SendWindow int       `json:"send_window"`
	RecvWindow int       `json:"recv_window"`
	MSS        int       `json:"mss"`
	RoundTrips
	Acked        uint64        `json:"acked"` // bytes of ours that the peer has
	Sent         uint64        `json:"sent"`  // bytes that were sent, once
	Received     uint64        `json:"received"`
	DeliveryRate uint64        `json:"delivery_rate"` // bits per second
	PacingRate   uint64        `json:"pacing_rate"`   // bits per second; 0: not paced
	Retransmits  uint64        `json:"retransmits"`
	Timeouts     uint64        `json:"timeouts"`
	TailProbes   uint64        `json:"tail_probes"`
	Limited      string        `json:"limited"` // as Info has it
	LimitedFor   time.Duration `json:"limited_for_ns"`
	NotSent      int           `json:"notsent_bytes"`
	Unread       int           `json:"unread"`
	Missed       uint64        `json:"missed,omitempty"` // as TracedSegment has it
}

// RoundTrips are what a Sample says of them.
type RoundTrips struct {
	RTT       time.Duration `json:"rtt_ns"`
	RTTVar    time.Duration `json:"rttvar_ns"`
	MinRTT    time.Duration `json:"min_rtt_ns"`
	LatestRTT time.Duration `json:"latest_rtt_ns"`
	RTO       time.Duration `json:"rto_ns"`
}
