package control

import (
	"net/netip"
	"time"
)

// PerfPort is the default port of iperf3's protocol.
const PerfPort = 5201

// PerfProto is the protocol of the measured streams. The control connection always uses TCP.
type PerfProto string

// These are the protocols. RCP and RDT work only between two tidepool nodes.
const (
	PerfTCP PerfProto = "tcp" // the default, like the empty string
	PerfUDP PerfProto = "udp"
	PerfRCP PerfProto = "rcp"
	PerfRDT PerfProto = "rdt"
)

// PerfUnlimited is the Rate without a limit.
const PerfUnlimited = -1

// Perf measures the throughput to a server of iperf3's protocol. When its context ends, it returns
// the report so far, with an Error.
type Perf struct {
	Answer[PerfReport]
	Addr  netip.Addr `json:"addr"`
	Port  uint16     `json:"port,omitempty"` // server's port; 0: 5201
	Proto PerfProto  `json:"proto,omitempty"`
	// Time is the duration; 0: 10 s, unless Bytes or Blocks limits what is sent.
	Time   time.Duration `json:"time_ns,omitempty"`
	Bytes  int64         `json:"bytes,omitempty"`
	Blocks int64         `json:"blocks,omitempty"`
	// Omit is the time at the start that the report leaves out, in whole seconds.
	Omit time.Duration `json:"omit_ns,omitempty"`
	// Every is the report interval; 0: 1 s; negative: only the final report.
	Every time.Duration `json:"every_ns,omitempty"`
	// Length is the size of a write; 0: 128 KiB, or for UDP what fits in a packet.
	Length int `json:"length,omitempty"`
	// Rate limits each stream, in bits per second; 0: 1 Mbit/s for UDP, otherwise no limit; -1: no
	// limit.
	Rate int64 `json:"rate,omitempty"`
	// Burst is the number of blocks that a stream with a Rate sends at once; 0: 1.
	Burst    int  `json:"burst,omitempty"`
	Parallel int  `json:"parallel,omitempty"` // number of streams; 0: 1
	Reverse  bool `json:"reverse,omitempty"`  // the server sends
	Bidir    bool `json:"bidir,omitempty"`    // both ends send
	// Window is the size of the socket buffers at both ends, Congestion is the algorithm, and MSS
	// is the maximum segment size. Zero and empty values: the node's defaults.
	Window     int    `json:"window,omitempty"`
	Congestion string `json:"congestion,omitempty"`
	MSS        int    `json:"mss,omitempty"`
	NoDelay    bool   `json:"no_delay,omitempty"`
	TOS        int    `json:"tos,omitempty"`
	// Start, if set, is called when the streams are established, Interval with each report.
	Start    func(PerfStart)    `json:"-"`
	Interval func(PerfInterval) `json:"-"`
}

// PerfServe serves iperf3's protocol on a port, one test at a time, until its context ends, or in
// the background until a PerfClose.
type PerfServe struct {
	Answer[PerfServed]
	Port       uint16 `json:"port,omitempty"` // listening port; 0: 5201
	Background bool   `json:"background,omitempty"`
	OneOff     bool   `json:"one_off,omitempty"` // stop after the first test
	// Listening, if set, is called when the port is open, and Ended after each test. Start and
	// Interval are as in Perf. None is called in the background, where a PerfEnded event reports
	// each test.
	Listening func(PerfServed)   `json:"-"`
	Start     func(PerfStart)    `json:"-"`
	Interval  func(PerfInterval) `json:"-"`
	Ended     func(PerfEnded)    `json:"-"`
}

// PerfServed is a server of iperf3's protocol.
type PerfServed struct {
	Local netip.AddrPort `json:"local"` // listening address; 0.0.0.0: every address
	Tests int            `json:"tests"` // number of tests started so far
	Busy  bool           `json:"busy"`
}

// PerfServers lists the servers of iperf3's protocol.
type PerfServers struct{ Answer[[]PerfServed] }

// PerfClose closes the server on a port and stops its test.
type PerfClose struct {
	Answer[Nothing]
	Port uint16 `json:"port,omitempty"` // listening port; 0: 5201
}

// PerfEnded is a finished test of a server.
type PerfEnded struct {
	Port    uint16     `json:"port"`
	Report  PerfReport `json:"report"`
	Problem string     `json:"problem,omitempty"` // why the test failed; empty: it succeeded
}

// Event implements the interface Event.
func (PerfEnded) Event() string { return "perf" }

// PerfReport is a report in the format of iperf3's JSON, with its names and units: bytes, bits per
// second, and seconds since the first counted byte.
type PerfReport struct {
	Start     PerfStart      `json:"start"`
	Intervals []PerfInterval `json:"intervals"`
	End       PerfEnd        `json:"end"`
	Error     string         `json:"error,omitempty"`
}

// PerfStart has the parameters of a test.
type PerfStart struct {
	Connected  []PerfConnected `json:"connected"`
	Version    string          `json:"version"`
	SystemInfo string          `json:"system_info"`
	Timestamp  PerfTimestamp   `json:"timestamp"`
	// ConnectingTo is set by a client, AcceptedConnection by a server.
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

// PerfConnected has the two ends of a stream.
type PerfConnected struct {
	Socket     int    `json:"socket"`
	LocalHost  string `json:"local_host"`
	LocalPort  uint16 `json:"local_port"`
	RemoteHost string `json:"remote_host"`
	RemotePort uint16 `json:"remote_port"`
}

// PerfTimestamp is a time of day, as text and as seconds since 1970.
type PerfTimestamp struct {
	Time     string `json:"time"`
	Timesecs int64  `json:"timesecs"`
}

// PerfHost is the other end of the control connection.
type PerfHost struct {
	Host string `json:"host"`
	Port uint16 `json:"port"`
}

// PerfTestStart has the parameters of a test that both ends agreed on.
type PerfTestStart struct {
	Protocol      string  `json:"protocol"` // protocol: TCP, UDP, RCP or RDT
	NumStreams    int     `json:"num_streams"`
	Blksize       int     `json:"blksize"`
	Omit          int     `json:"omit"`     // excluded time at the start, in seconds
	Duration      float64 `json:"duration"` // duration in seconds
	Bytes         int64   `json:"bytes"`
	Blocks        int64   `json:"blocks"`
	Reverse       int     `json:"reverse"` // 1: the server sends
	TOS           int     `json:"tos"`
	TargetBitrate int64   `json:"target_bitrate"`
	Bidir         int     `json:"bidir"` // 1: both ends send
}

// PerfInterval is the report of one interval.
type PerfInterval struct {
	Streams []PerfRow `json:"streams"`
	Sum     PerfRow   `json:"sum"`
	// SumBidirReverse is the sum of the other direction, if both ends send.
	SumBidirReverse *PerfRow `json:"sum_bidir_reverse,omitempty"`
}

// PerfEnd is the final report.
type PerfEnd struct {
	Streams []PerfStreamEnd `json:"streams"`
	// Sum is set for UDP only.
	Sum         *PerfRow `json:"sum,omitempty"`
	SumSent     PerfRow  `json:"sum_sent"`
	SumReceived PerfRow  `json:"sum_received"`
	// The sums of the other direction, if both ends send.
	SumSentBidirReverse     *PerfRow `json:"sum_sent_bidir_reverse,omitempty"`
	SumReceivedBidirReverse *PerfRow `json:"sum_received_bidir_reverse,omitempty"`

	CPUUtilizationPercent PerfCPU `json:"cpu_utilization_percent"`
	SenderTCPCongestion   string  `json:"sender_tcp_congestion,omitempty"`
	ReceiverTCPCongestion string  `json:"receiver_tcp_congestion,omitempty"`
}

// PerfStreamEnd has both ends' reports of a stream; for UDP they share one.
type PerfStreamEnd struct {
	Sender   *PerfRow `json:"sender,omitempty"`
	Receiver *PerfRow `json:"receiver,omitempty"`
	UDP      *PerfRow `json:"udp,omitempty"`
}

// PerfCPU is the CPU time of the two programs during the test, in percent of one CPU. A node counts
// its whole process.
type PerfCPU struct {
	HostTotal    float64 `json:"host_total"`
	HostUser     float64 `json:"host_user"`
	HostSystem   float64 `json:"host_system"`
	RemoteTotal  float64 `json:"remote_total"`
	RemoteUser   float64 `json:"remote_user"`
	RemoteSystem float64 `json:"remote_system"`
}

// PerfRow is one line of a report. Fields that do not apply are omitted.
type PerfRow struct {
	Socket        int     `json:"socket,omitempty"` // number of the socket; 0: the row is a sum
	Start         float64 `json:"start"`
	End           float64 `json:"end"`
	Seconds       float64 `json:"seconds"`
	Bytes         int64   `json:"bytes"`
	BitsPerSecond float64 `json:"bits_per_second"`

	// TCP senders only: retransmitted segments, windows in bytes, round trips in microseconds.
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

	// These fields are set for UDP only: jitter (RFC 3550) and datagrams.
	JitterMS    *float64 `json:"jitter_ms,omitempty"`
	LostPackets *int64   `json:"lost_packets,omitempty"`
	Packets     *int64   `json:"packets,omitempty"`
	LostPercent *float64 `json:"lost_percent,omitempty"`
	OutOfOrder  *int64   `json:"out_of_order,omitempty"`

	Omitted *bool `json:"omitted,omitempty"` // the final report leaves out this interval
	Sender  bool  `json:"sender"`            // this end sends data
}
