package control

import (
	"net/netip"
	"time"
)

// Sockets lists the sockets, ordered by number.
type Sockets struct {
	Answer[[]Socket]
	// Info adds each connection's internal state.
	Info bool `json:"info,omitempty"`
	// Timers adds each connection's timer, so two answers always differ.
	Timers bool `json:"timers,omitempty"`
}

// Socket is one socket: a listener, a connection or a program's UDP socket.
type Socket struct {
	SID    int            `json:"sid"`    // socket number; -1: a half-open connection of a listener
	Local  netip.AddrPort `json:"local"`  // local address; 0.0.0.0: every address
	Remote netip.AddrPort `json:"remote"` // remote address; 0.0.0.0:0 for a listener
	State  string         `json:"state"`  // state as RFC 9293 §3.3.2 names it (SYN_SENT), or UDP
	RecvQ  int            `json:"recv_q"` // bytes to read; for a listener: connections to accept
	SendQ  int            `json:"send_q"` // bytes not yet acknowledged; for a listener: the backlog
	// Program is set for a socket in the kernel, of a program that runs as this host.
	Program bool `json:"program,omitempty"`
	// Timer is nil if it was not requested, or no timer is running.
	Timer *Timer `json:"timer,omitempty"`
	Info  *Info  `json:"info,omitempty"`
}

// Timer is the running timer of a connection, as ss -o shows it.
type Timer struct {
	// Name is "on" for a retransmission, "persist" for a window probe, "keepalive" for a
	// keepalive probe or its failure, or "timewait".
	Name    string        `json:"name"`
	In      time.Duration `json:"in_ns"`
	Retries int           `json:"retries"` // retransmissions without an answer
}

// Info is a connection's internal state, like Linux's TCP_INFO as ss -ti shows it.
type Info struct {
	Recovery   string        `json:"recovery"` // loss recovery: open, recovery or loss
	Congestion string        `json:"congestion"`
	Strategy   string        `json:"strategy"` // the loss recovery: gbn, newreno, sack, rack
	SACK       bool          `json:"sack"`
	Timestamps bool          `json:"timestamps"`
	ECN        bool          `json:"ecn"`
	Plain      bool          `json:"plain"`      // no TCP options were negotiated
	SendScale  int           `json:"send_scale"` // window scale of the peer; -1: no window scaling
	RecvScale  int           `json:"recv_scale"`
	RTO        time.Duration `json:"rto_ns"`
	RTT        time.Duration `json:"rtt_ns"`
	RTTVar     time.Duration `json:"rttvar_ns"`
	MinRTT     time.Duration `json:"min_rtt_ns"`
	LatestRTT  time.Duration `json:"latest_rtt_ns"`
	Backoff    int           `json:"backoff"` // number of times that the RTO was doubled
	ATO        time.Duration `json:"ato_ns"`  // delayed-acknowledgment timeout
	MSS        int           `json:"mss"`
	RecvMSS    int           `json:"rcvmss"`
	AdvMSS     int           `json:"advmss"` // the MSS option of our SYN
	PMTU       int           `json:"pmtu"`
	Cwnd       int           `json:"cwnd"`     // congestion window in bytes
	Ssthresh   int           `json:"ssthresh"` // slow start threshold in bytes; 0: not set yet
	SendWindow int           `json:"send_window"`
	RecvWindow int           `json:"recv_window"`
	Pipe       int           `json:"pipe"`    // bytes in flight
	PipeACK    int           `json:"pipeack"` // pipeACK of RFC 7661 §4.2 in bytes; 0: undefined

	BytesSent     uint64 `json:"bytes_sent"` // bytes sent, including retransmissions
	BytesAcked    uint64 `json:"bytes_acked"`
	BytesRetrans  uint64 `json:"bytes_retrans"`
	BytesReceived uint64 `json:"bytes_received"`
	SegsOut       uint64 `json:"segs_out"`
	SegsIn        uint64 `json:"segs_in"`
	DataSegsOut   uint64 `json:"data_segs_out"`
	DataSegsIn    uint64 `json:"data_segs_in"`
	Delivered     uint64 `json:"delivered"`     // segments delivered
	DeliveryRate  uint64 `json:"delivery_rate"` // delivery rate in bits per second
	AppLimited    bool   `json:"app_limited"`   // the application limited DeliveryRate
	PacingRate    uint64 `json:"pacing_rate"`   // pacing rate in bits per second; 0: not paced

	Unacked      int    `json:"unacked"` // segments in flight
	Lost         int    `json:"lost"`    // segments in flight that are considered lost
	Sacked       int    `json:"sacked"`  // segments in flight that the peer reported received
	Retrans      int    `json:"retrans"` // segments in flight that were retransmitted
	Retransmits  uint64 `json:"retransmits"`
	DSACKs       uint64 `json:"dsack_dups"`  // segments that the peer received twice
	ReorderSeen  uint64 `json:"reord_seen"`  // number of reordering events
	OutOfOrder   uint64 `json:"rcv_ooopack"` // segments received out of order
	Timeouts     uint64 `json:"timeouts"`    // retransmission timeouts that fired
	TailProbes   uint64 `json:"tail_probes"`
	Undone       uint64 `json:"undone"` // recoveries undone because they were spurious
	WindowProbes uint64 `json:"window_probes"`

	LostRetransmits uint64        `json:"lost_retransmits"`
	FastRecoveries  uint64        `json:"fast_recoveries"`
	TimeoutEpisodes uint64        `json:"timeout_episodes"`
	TimeoutTime     time.Duration `json:"timeout_time_ns"` // time until delivery resumed
	DupAcks         uint64        `json:"dup_acks"`
	Retries         int           `json:"retries"`         // timeouts since the last acknowledgment
	Probes          int           `json:"probes"`          // unanswered window probes
	Early           int           `json:"early"`           // ranges received out of order
	ECNMarks        uint64        `json:"ecn_marks"`       // segments that arrived with the CE mark
	ECNEchoes       uint64        `json:"ecn_echoes"`      // window reductions because of ECN
	UserTimeout     time.Duration `json:"user_timeout_ns"` // user timeout; 0: no timeout
	Unread          int           `json:"unread"`          // bytes received but not read

	// Limited is what limits the data in flight: "app", "cwnd", "rwnd", "sndbuf", "pacing",
	// "nagle", "cork", "persist", "recovery" or "idle". LimitedFor is how long this reason has
	// applied; it is 0 for a program's connection, because the kernel does not report it.
	Limited    string        `json:"limited"`
	LimitedFor time.Duration `json:"limited_for_ns"`
	// BusyTime is the time with data to send. Parts of it are RwndLimited, spent waiting for the
	// peer's window, and SndbufLimited, for room in the send buffer.
	BusyTime      time.Duration `json:"busy_time_ns"`
	RwndLimited   time.Duration `json:"rwnd_limited_ns"`
	SndbufLimited time.Duration `json:"sndbuf_limited_ns"`
	// NotSent is the number of bytes written but not sent. SendBuffer and RecvBuffer are current
	// buffer sizes, RecvSpace is the most that the program read in one RecvRTT.
	NotSent      int           `json:"notsent_bytes"`
	SendBuffer   int           `json:"send_buffer"`
	RecvBuffer   int           `json:"recv_buffer"`
	RecvSpace    int           `json:"rcv_space"`
	RecvRTT      time.Duration `json:"rcv_rtt_ns"`
	LastSent     time.Duration `json:"last_sent_ns"`     // time since data was last sent
	LastReceived time.Duration `json:"last_received_ns"` // time since data was last received
	LastAck      time.Duration `json:"last_ack_ns"`      // time since an ACK was last received
}

// Listen opens a listener and accepts all connections. Each connection gets its own socket and an
// Accepted event.
type Listen struct {
	Answer[Socket]
	Port uint16 `json:"port"`
}

// Connect opens a connection and waits until it is established.
type Connect struct {
	Answer[Socket]
	Addr netip.Addr `json:"addr"`
	Port uint16     `json:"port"`
}

// Write writes to a connection and waits until all of it is in the send buffer.
type Write struct {
	Answer[Written]
	SID  int    `json:"sid"`
	Data []byte `json:"data"`
}

// Written is the result of a Write.
type Written struct {
	Bytes int `json:"bytes"`
}

// Read waits for data on a connection and reads up to N bytes.
type Read struct {
	Answer[Data]
	SID int `json:"sid"`
	N   int `json:"n"`
	// Full waits until all N bytes are received or the peer closes.
	Full bool `json:"full,omitempty"`
}

// Data is the result of a Read.
type Data struct {
	Bytes []byte `json:"bytes"`
	EOF   bool   `json:"eof"` // the peer has closed, and all data has been read
}

// Window returns both windows of a connection.
type Window struct {
	Answer[Windows]
	SID int `json:"sid"`
}

// Windows are the bytes that each end of a connection may still send.
type Windows struct {
	SID     int `json:"sid"`
	Send    int `json:"send"`    // window that the peer announced
	Receive int `json:"receive"` // window that this node announced
}

// Shutdown closes one direction of a connection or both.
type Shutdown struct {
	Answer[Nothing]
	SID int `json:"sid"`
	How How `json:"how"`
}

// How is the direction that a Shutdown closes.
type How string

// These are the directions of Shutdown.
const (
	ShutdownRead  How = "read"
	ShutdownWrite How = "write"
	ShutdownBoth  How = "both"
)

// Close closes a socket and returns at once. Written data is still sent.
type Close struct {
	Answer[Nothing]
	SID int `json:"sid"`
}

// Congestion changes a connection's congestion control, and returns the connection with its Info.
type Congestion struct {
	Answer[Socket]
	SID  int    `json:"sid"`
	Name string `json:"name"`
}

// ListenUDP opens a UDP socket. Received datagrams are Datagram events. A Write goes to the sender
// of the last datagram.
type ListenUDP struct {
	Answer[Socket]
	Port uint16 `json:"port"` // local port; 0: a free port
}

// SendUDP sends one datagram from a socket connected to Addr and Port, which the first call opens
// and later calls reuse. Replies are Datagram events, ICMP errors Undelivered events.
type SendUDP struct {
	Answer[DatagramSent]
	Addr netip.Addr `json:"addr"`
	Port uint16     `json:"port"`
	Data []byte     `json:"data"`
}

// DatagramSent contains the socket and the number of bytes that it sent.
type DatagramSent struct {
	SID   int `json:"sid"`
	Bytes int `json:"bytes"`
}
