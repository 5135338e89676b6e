package control

import (
	"net/netip"
	"time"
)

// PerfPort is where a server of iperf3's protocol listens unless somebody says otherwise.
const PerfPort = 5201

// PerfProto is what carries the bytes of a measurement. The control connection is always TCP's.
type PerfProto string

// The carriers. The last two are understood between two of our nodes only.
const (
	PerfTCP PerfProto = "tcp" // and the empty string
	PerfUDP PerfProto = "udp"
	PerfRCP PerfProto = "rcp"
	PerfRDT PerfProto = "rdt"
)

// PerfUnlimited is the Rate that is none.
const PerfUnlimited = -1

// Perf measures how much gets through to a server of iperf3's protocol; answer PerfReport. When
// its context ends it answers with what there is, and the report's Error says so.
type Perf struct {
	Addr  netip.Addr `json:"addr"`
	Port  uint16     `json:"port,omitempty"` // 0: 5201
	Proto PerfProto  `json:"proto,omitempty"`
	// Time is how long it is measured; 0: 10 s, unless Bytes or Blocks say how much is sent.
	Time   time.Duration `json:"time_ns,omitempty"`
	Bytes  int64         `json:"bytes,omitempty"`
	Blocks int64         `json:"blocks,omitempty"`
	// Omit is how long it runs before anything counts, in whole seconds.
	Omit time.Duration `json:"omit_ns,omitempty"`
	// Every is the time between two reports; 0: 1 s, negative: none but the last.
	Every time.Duration `json:"every_ns,omitempty"`
	// Length is what is written at once; 0: 128 KiB, of UDP what fits into a packet.
	Length int `json:"length,omitempty"`
	// Rate is the most that a stream sends, in bits a second; 0: of UDP 1 Mbit/s, else no bound;
	// -1: no bound.
	Rate int64 `json:"rate,omitempty"`
	// Burst is how many blocks are sent at once where there is a Rate; 0: as they come due.
	Burst    int  `json:"burst,omitempty"`
	Parallel int  `json:"parallel,omitempty"` // streams; 0: 1
	Reverse  bool `json:"reverse,omitempty"`  // the server sends
	Bidir    bool `json:"bidir,omitempty"`    // both do
	// Window is the size of the socket buffers at both ends, Congestion the algorithm, MSS the
	// bound of a segment; zero: what the node has.
	Window     int    `json:"window,omitempty"`
	Congestion string `json:"congestion,omitempty"`
	MSS        int    `json:"mss,omitempty"`
	NoDelay    bool   `json:"no_delay,omitempty"`
	TOS        int    `json:"tos,omitempty"`
	// Start, if set, is called when the streams stand, and Interval with each report as it comes.
	Start    func(PerfStart)    `json:"-"`
	Interval func(PerfInterval) `json:"-"`
}

func (Perf) answers(PerfReport) {}

// PerfServe answers iperf3's protocol on a port, one test at a time, until its context ends, or in
// the background until a PerfClose; answer PerfServed.
type PerfServe struct {
	Port       uint16 `json:"port,omitempty"` // 0: 5201
	Background bool   `json:"background,omitempty"`
	OneOff     bool   `json:"one_off,omitempty"` // end behind the first test
	// Listening, if set, is called when the port is open. Start and Interval are called as a
	// Perf's are, and Ended when a test is over. In the background none is; what ended is told
	// as an event.
	Listening func(PerfServed)   `json:"-"`
	Start     func(PerfStart)    `json:"-"`
	Interval  func(PerfInterval) `json:"-"`
	Ended     func(PerfEnded)    `json:"-"`
}

func (PerfServe) answers(PerfServed) {}

// PerfServed is a port with a server of iperf3's protocol.
type PerfServed struct {
	Local netip.AddrPort `json:"local"` // 0.0.0.0 when it takes every address
	Tests int            `json:"tests"` // begun so far
	Busy  bool           `json:"busy"`
}

// PerfServers asks for the servers of iperf3's protocol; answer []PerfServed.
type PerfServers struct{}

func (PerfServers) answers([]PerfServed) {}

// PerfClose ends the server on a port, and the test there; answer Nothing.
type PerfClose struct {
	Port uint16 `json:"port,omitempty"` // 0: 5201
}

func (PerfClose) answers(Nothing) {}

// PerfEnded is a test that a server has ended.
type PerfEnded struct {
	Port    uint16     `json:"port"`
	Report  PerfReport `json:"report"`
	Problem string     `json:"problem,omitempty"` // empty: it succeeded
}

// Event is part of the interface of that name.
func (PerfEnded) Event() string { return "perf" }

// PerfReport is a measurement in the shape of iperf3's JSON, with its names and units: bytes, bits
// a second, and seconds since the first byte counted.
type PerfReport struct {
	Start     PerfStart      `json:"start"`
	Intervals []PerfInterval `json:"intervals"`
	End       PerfEnd        `json:"end"`
	Error     string         `json:"error,omitempty"`
}

// PerfStart is what is known before the first byte.
type PerfStart struct {
	Connected  []PerfConnected `json:"connected"`
	Version    string          `json:"version"`
	SystemInfo string          `json:"system_info"`
	Timestamp  PerfTimestamp   `json:"timestamp"`
	// ConnectingTo is a client's, AcceptedConnection a server's.
	ConnectingTo       *PerfHost     `json:"connecting_to,omitempty"`
	AcceptedConnection *PerfHost     `json:"accepted_connection,omitempty"`
	Cookie             string        `json:"cookie"`
	TCPMSSDefault      int           `json:"tcp_mss_default,omitempty"`
	TargetBitrate      int64         `json:"target_bitrate"`
	SockBufsize        int           `json:"sock_bufsize"`
	SndbufActual       int           `json:"sndbuf_actual"`
	RcvbufActual       int           `json:"rcvbuf_actual"`
	TestStart          PerfTestStart `json:"test_start"`
}

// PerfConnected is a stream's two ends.
type PerfConnected struct {
	Socket     int    `json:"socket"`
	LocalHost  string `json:"local_host"`
	LocalPort  uint16 `json:"local_port"`
	RemoteHost string `json:"remote_host"`
	RemotePort uint16 `json:"remote_port"`
}

// PerfTimestamp is a time of day, in words and as seconds since 1970.
type PerfTimestamp struct {
	Time     string `json:"time"`
	Timesecs int64  `json:"timesecs"`
}

// PerfHost is the other end of the control connection.
type PerfHost struct {
	Host string `json:"host"`
	Port uint16 `json:"port"`
}

// PerfTestStart is what was agreed upon.
type PerfTestStart struct {
	Protocol      string  `json:"protocol"` // TCP, UDP, RCP or RDT
	NumStreams    int     `json:"num_streams"`
	Blksize       int     `json:"blksize"`
	Omit          int     `json:"omit"`     // seconds
	Duration      float64 `json:"duration"` // seconds
	Bytes         int64   `json:"bytes"`
	Blocks        int64   `json:"blocks"`
	Reverse       int     `json:"reverse"` // 1: the server sends
	TOS           int     `json:"tos"`
	TargetBitrate int64   `json:"target_bitrate"`
	Bidir         int     `json:"bidir"` // 1: both send
}

// PerfInterval is what was moved since the last report.
type PerfInterval struct {
	Streams []PerfRow `json:"streams"`
	Sum     PerfRow   `json:"sum"`
	// SumBidirReverse is what came the other way, if both send.
	SumBidirReverse *PerfRow `json:"sum_bidir_reverse,omitempty"`
}

// PerfEnd is what it comes to.
type PerfEnd struct {
	Streams []PerfStreamEnd `json:"streams"`
	// Sum is UDP's alone.
	Sum         *PerfRow `json:"sum,omitempty"`
	SumSent     PerfRow  `json:"sum_sent"`
	SumReceived PerfRow  `json:"sum_received"`
	// What went the other way, if both send.
	SumSentBidirReverse     *PerfRow `json:"sum_sent_bidir_reverse,omitempty"`
	SumReceivedBidirReverse *PerfRow `json:"sum_received_bidir_reverse,omitempty"`

	CPUUtilizationPercent PerfCPU `json:"cpu_utilization_percent"`
	SenderTCPCongestion   string  `json:"sender_tcp_congestion,omitempty"`
	ReceiverTCPCongestion string  `json:"receiver_tcp_congestion,omitempty"`
}

// PerfStreamEnd is one stream as its two ends saw it, and of UDP both in one.
type PerfStreamEnd struct {
	Sender   *PerfRow `json:"sender,omitempty"`
	Receiver *PerfRow `json:"receiver,omitempty"`
	UDP      *PerfRow `json:"udp,omitempty"`
}

// PerfCPU is the processor time of the two programs while it was measured, in percent of one
// processor. A node's is that of its whole process.
type PerfCPU struct {
	HostTotal    float64 `json:"host_total"`
	HostUser     float64 `json:"host_user"`
	HostSystem   float64 `json:"host_system"`
	RemoteTotal  float64 `json:"remote_total"`
	RemoteUser   float64 `json:"remote_user"`
	RemoteSystem float64 `json:"remote_system"`
}

// PerfRow is one line of a report. What does not apply is left out.
type PerfRow struct {
	Socket        int     `json:"socket,omitempty"` // 0: a sum
	Start         float64 `json:"start"`
	End           float64 `json:"end"`
	Seconds       float64 `json:"seconds"`
	Bytes         int64   `json:"bytes"`
	BitsPerSecond float64 `json:"bits_per_second"`

	// A TCP sender's: segments sent again, windows in bytes, round trips in microseconds.
	Retransmits *int64 `json:"retransmits,omitempty"`
	SndCwnd     *int64 `json:"snd_cwnd,omitempty"`
	SndWnd      *int64 `json:"snd_wnd,omitempty"`
	RTT         *int64 `json:"rtt,omitempty"`
	RTTVar      *int64 `json:"rttvar,omitempty"`
	PMTU        *int64 `json:"pmtu,omitempty"`
	MaxSndCwnd  *int64 `json:"max_snd_cwnd,omitempty"`
	MaxSndWnd   *int64 `json:"max_snd_wnd,omitempty"`
	MaxRTT      *int64 `json:"max_rtt,omitempty"`
	MinRTT      *int64 `json:"min_rtt,omitempty"`
	MeanRTT     *int64 `json:"mean_rtt,omitempty"`

	// UDP's: jitter as RFC 3550 has it, and datagrams.
	JitterMS    *float64 `json:"jitter_ms,omitempty"`
	LostPackets *int64   `json:"lost_packets,omitempty"`
	Packets     *int64   `json:"packets,omitempty"`
	LostPercent *float64 `json:"lost_percent,omitempty"`
	OutOfOrder  *int64   `json:"out_of_order,omitempty"`

	Omitted *bool `json:"omitted,omitempty"` // of an interval: it does not count
	Sender  bool  `json:"sender"`            // this end sends
}
