package control

import "time"

// Record captures packets until ctx ends, Count packets are captured or the node stops. A slow
// reader loses packets, which are counted, and never delays the node.
type Record struct {
	Answer[Captured]
	Iface string `json:"iface,omitempty"` // an interface, "lo", or "all"; empty: all
	// Filter selects packets in the syntax of pcap-filter(7): "tcp port 80 and not host 10.0.0.1",
	// "tcp[syn]", "drop". Empty: all.
	Filter  string `json:"filter,omitempty"`
	Snaplen int    `json:"snaplen,omitempty"` // bytes kept of each packet; 0: all
	Count   uint64 `json:"count,omitempty"`   // stop after this many packets; 0: no limit
	// File is the pcapng file that the node writes; empty: Piece receives the packets.
	File string `json:"file,omitempty"`
	// FileSize starts a new, numbered file after this many bytes; 0: no limit. Files keeps only the
	// newest files; 0: all.
	FileSize int64 `json:"file_size,omitempty"`
	Files    int   `json:"files,omitempty"`
	// Overwrite replaces an existing capture of that name, but no file of another kind.
	Overwrite bool `json:"overwrite,omitempty"`
	// Lines passes a line of text for each packet to Packet, instead of the pcapng stream to Piece.
	Lines bool `json:"lines,omitempty"`
	// Begun, if set, is called when the capture has begun: packets after that are captured.
	Begun func() `json:"-"`
	// Piece, if set, is called with the next bytes of the pcapng stream.
	Piece func([]byte) `json:"-"`
	// Packet, if set, is called with every packet when Lines is set.
	Packet func(Packet) `json:"-"`
}

// Packet is one packet of a capture with Lines.
type Packet struct {
	At     time.Time `json:"at"`
	Iface  string    `json:"iface"`
	Sent   bool      `json:"sent"`            // direction; false: received
	Length int       `json:"length"`          // length on the link in bytes
	Text   string    `json:"text"`            // one line, like tcpdump's
	Drop   string    `json:"drop,omitempty"`  // reason why the packet was dropped
	State  string    `json:"state,omitempty"` // the connection's state: "cwnd=10 …"
}

// Captured is the result of a capture.
type Captured struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`  // the sum of the packets' lengths on the link
	Missed  uint64 `json:"missed"` // packets lost because the reader was too slow
	File    string `json:"file,omitempty"`
	Files   int    `json:"files,omitempty"` // number of files
	// Problem is why the capture ended early, such as a full disk.
	Problem string `json:"problem,omitempty"`
}

// StartCapture starts a capture into a file, until StopCapture.
type StartCapture struct {
	Answer[Capturing]
	Iface     string `json:"iface,omitempty"` // as in Record, like the next fields
	Filter    string `json:"filter,omitempty"`
	Snaplen   int    `json:"snaplen,omitempty"`
	Count     uint64 `json:"count,omitempty"`
	File      string `json:"file"`
	FileSize  int64  `json:"file_size,omitempty"`
	Files     int    `json:"files,omitempty"`
	Overwrite bool   `json:"overwrite,omitempty"`
}

// StopCapture stops a capture that StartCapture started.
type StopCapture struct {
	Answer[Captured]
	ID int `json:"id"` // number of the capture; 0: the only one
}

// Captures lists the captures and traces in progress.
type Captures struct{ Answer[[]Capturing] }

// Capturing is a capture or a trace in progress.
type Capturing struct {
	ID      int       `json:"id"`   // number for StopCapture; 0: not started by StartCapture
	Kind    string    `json:"kind"` // "capture" or "trace"
	Iface   string    `json:"iface"`
	Filter  string    `json:"filter"`
	File    string    `json:"file"`
	Since   time.Time `json:"since"`
	Packets uint64    `json:"packets"` // packets passed to the reader
	Missed  uint64    `json:"missed"`
}

// Trace follows one TCP connection, segment by segment, until it ends, Count segments were seen or
// ctx ends. A slow reader loses segments, which are counted.
type Trace struct {
	Answer[Traced]
	// SID is a connection. If it is a listener, Trace follows the next connection to its port.
	SID int `json:"sid"`
	// Filter, if set, replaces SID: it selects the connection of the first matching segment, in
	// the syntax of Record. That connection may be forwarded.
	Filter string `json:"filter,omitempty"`
	Count  uint64 `json:"count,omitempty"`
	// Recorded starts with the segments in the connection's recorder, if tcp.recorder is set.
	// They do not count towards Count.
	Recorded bool `json:"recorded,omitempty"`
	// Drops reports only dropped segments.
	Drops bool `json:"drops,omitempty"`
	// Begun, if set, is called when the trace has begun.
	Begun func() `json:"-"`
	// Segment, if set, is called with each segment.
	Segment func(TracedSegment) `json:"-"`
}

// Traced is the result of a Trace.
type Traced struct {
	Segments uint64 `json:"segments"`
	Missed   uint64 `json:"missed"`
}

// TracedSegment is one segment of a connection. Sequence numbers count from 0 at the SYN. In
// another node's connection whose SYN was not seen, they count from 1 at the first byte seen.
type TracedSegment struct {
	At    time.Time     `json:"at"`
	Since time.Duration `json:"since_ns"` // time since the previous segment
	SID   int           `json:"sid"`      // -1: no number, or another node's connection
	Iface string        `json:"iface"`
	// Left and Right are the two ends. Left is the node itself, or the end that sent first.
	Left  string `json:"left"`
	Right string `json:"right"`
	Sent  bool   `json:"sent"`  // direction; true: from Left to Right
	Flags string `json:"flags"` // flags in tcpdump's notation: "S", "P.", "F."
	Seq   uint64 `json:"seq"`
	Ack   uint64 `json:"ack"` // valid if the flags have a "."
	// WireSeq is the sequence number in the segment's header.
	WireSeq uint32 `json:"wire_seq"`
	// Length is the length of the payload, and Window is the scaled window, both in bytes.
	Length int     `json:"length"`
	Window int     `json:"window"`
	SACK   []Range `json:"sack,omitempty"`
	// MSS and Scale are the options of a SYN; Scale -1: no such option.
	MSS    int    `json:"mss,omitempty"`
	Scale  int    `json:"scale,omitempty"`
	TSVal  uint32 `json:"tsval,omitempty"`
	TSEcr  uint32 `json:"tsecr,omitempty"`
	ECN    string `json:"ecn,omitempty"`  // ECN field of the IP header: ect0, ect1, ce
	Drop   string `json:"drop,omitempty"` // reason why the segment was dropped
	Marks  []Mark `json:"marks,omitempty"`
	DupAck int    `json:"dup_ack,omitempty"` // number of this duplicate acknowledgment

	// Connection is the state of the connection that the segment belongs to; zero: not known.
	Connection Moment `json:"connection,omitzero"`
	// Missed is the number of segments lost between the previous one and this one.
	Missed uint64 `json:"missed,omitempty"`
}

// Moment is the state of a connection: after it sent a segment, or before it processed one.
type Moment struct {
	State      string        `json:"state,omitempty"`
	Recovery   string        `json:"recovery,omitempty"` // loss recovery: open, recovery or loss
	Congestion string        `json:"congestion,omitempty"`
	Cwnd       int           `json:"cwnd,omitempty"`     // congestion window in bytes
	Ssthresh   int           `json:"ssthresh,omitempty"` // slow start threshold; 0: not set yet
	Pipe       int           `json:"pipe,omitempty"`     // bytes in flight
	SendMSS    int           `json:"snd_mss,omitempty"`
	RTT        time.Duration `json:"rtt_ns,omitempty"`
}

// Range is a range of sequence numbers, as TracedSegment counts them.
type Range struct {
	Begin uint64 `json:"begin"`
	End   uint64 `json:"end"`
}

// Mark is a notable property of a segment.
type Mark string

// These are the marks.
const (
	MarkRetransmission Mark = "retransmission"  // its data was sent before
	MarkGap            Mark = "gap"             // data in front of the segment is missing
	MarkFillsGap       Mark = "fills a gap"     // the data is late, but was not seen before
	MarkDupAck         Mark = "dup ack"         // the acknowledgment is a duplicate (RFC 5681 §2)
	MarkZeroWindow     Mark = "zero window"     // the receiver has no room
	MarkWindow         Mark = "window update"   // the receiver's window has grown
	MarkProbe          Mark = "window probe"    // the sender probes a zero window
	MarkKeepalive      Mark = "keep-alive"      // the sequence number is one below the next
	MarkDSACK          Mark = "duplicate SACK"  // the receiver reports duplicate data (RFC 2883)
	MarkECE            Mark = "congestion echo" // ECE, RFC 3168
	MarkCWR            Mark = "window reduced"  // the sender has reduced its window (CWR)
)

// Samples reports a connection's state repeatedly, until the connection or ctx ends.
type Samples struct {
	Answer[Sampled]
	SID int `json:"sid"`
	// Every is the minimum interval; 0: 100 ms; negative: every sample. A loss, a timeout and a
	// change of state are reported at once.
	Every time.Duration `json:"every_ns,omitempty"`
	// Begun, if set, is called when the sampling has begun.
	Begun func() `json:"-"`
	// Sample, if set, is called with each sample.
	Sample func(Sample) `json:"-"`
}

// Sampled is the result of a request for samples.
type Sampled struct {
	Samples uint64 `json:"samples"`
	Missed  uint64 `json:"missed"` // samples lost because the reader was too slow
}

// Sample is a connection's state at one instant. Bytes are counted from the connection's first.
type Sample struct {
	At       time.Time `json:"at"`
	SID      int       `json:"sid"`
	State    string    `json:"state"`
	Acked    uint64    `json:"acked"` // bytes that the peer has acknowledged
	Sent     uint64    `json:"sent"`  // bytes sent, without retransmissions
	Received uint64    `json:"received"`
	Info     *Info     `json:"info"`
	Missed   uint64    `json:"missed,omitempty"` // samples lost before this one
}
