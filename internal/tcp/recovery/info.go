package recovery

import "time"

// Info is the state of a connection that operators and programs see, with the fields of Linux's
// struct tcp_info under its names in Go's form: tcpi_snd_cwnd is SndCwnd. Windows are in bytes,
// where Linux counts segments; rates are in bits per second. JSON has names of its own. A Recovery
// fills in the first half and package tcp the second.
type Info struct {
	CAState           string `json:"recovery"` // loss recovery: open, recovery or loss
	CongestionControl string `json:"congestion"`
	Strategy          string `json:"strategy"` // the loss recovery: gbn, newreno, sack, rack

	// RTT and RTTVar are the smoothed round-trip time and its variation (RFC 6298). MinRTT is the
	// recent minimum, LatestRTT the last sample. 0: not measured.
	RTT         time.Duration `json:"rtt_ns"`
	RTTVar      time.Duration `json:"rttvar_ns"`
	MinRTT      time.Duration `json:"min_rtt_ns"`
	LatestRTT   time.Duration `json:"latest_rtt_ns"`
	RTTSamples  uint64        `json:"-"` // number of round-trip samples
	RTO         time.Duration `json:"rto_ns"`
	Backoff     int           `json:"backoff"`  // number of times that the RTO was doubled
	SndCwnd     int           `json:"cwnd"`     // congestion window in bytes
	SndSsthresh int           `json:"ssthresh"` // slow start threshold in bytes; 0: not set yet
	Pipe        int           `json:"pipe"`     // bytes in flight (RFC 6675 §4)
	PipeACK     int           `json:"pipeack"`  // pipeACK of RFC 7661 §4.2 in bytes; 0: undefined

	Unacked int `json:"unacked"` // segments in flight
	Lost    int `json:"lost"`    // segments in flight that are considered lost
	Sacked  int `json:"sacked"`  // segments in flight that the peer reported received
	Retrans int `json:"retrans"` // segments in flight that were retransmitted

	BytesRetrans           uint64 `json:"bytes_retrans"`
	Delivered              uint64 `json:"delivered"`     // segments delivered
	DeliveredBytes         uint64 `json:"-"`             // bytes acknowledged, also by SACK
	DeliveryRate           uint64 `json:"delivery_rate"` // delivery rate in bits per second
	DeliveryRateAppLimited bool   `json:"app_limited"`   // the application limited DeliveryRate
	PacingRate             uint64 `json:"pacing_rate"`   // in bits per second; 0: not paced
	Counts
	TotalRTORecoveries uint64        `json:"timeout_episodes"` // periods of consecutive timeouts
	TotalRTOTime       time.Duration `json:"timeout_time_ns"`  // time until delivery resumed
	Retransmits        int           `json:"retries"`          // timeouts since the last new ACK

	// SACK, Timestamps and ECN were negotiated in the handshake.
	SACK       bool `json:"sack"`
	Timestamps bool `json:"timestamps"`
	ECN        bool `json:"ecn"`
	Plain      bool `json:"plain"`      // no TCP options were negotiated
	SndWScale  int  `json:"send_scale"` // window scale of the peer; -1: no window scaling
	RcvWScale  int  `json:"recv_scale"`

	ATO         time.Duration `json:"ato_ns"`          // delayed-acknowledgment timeout
	UserTimeout time.Duration `json:"user_timeout_ns"` // user timeout; 0: no timeout
	SndMSS      int           `json:"mss"`
	RcvMSS      int           `json:"rcvmss"`
	AdvMSS      int           `json:"advmss"` // the MSS option of our SYN
	PMTU        int           `json:"pmtu"`
	SndWnd      int           `json:"send_window"` // the peer's window
	RcvWnd      int           `json:"recv_window"`

	BytesSent     uint64 `json:"bytes_sent"` // bytes sent, including retransmissions
	BytesAcked    uint64 `json:"bytes_acked"`
	BytesReceived uint64 `json:"bytes_received"`
	SegsOut       uint64 `json:"segs_out"`
	SegsIn        uint64 `json:"segs_in"`
	DataSegsOut   uint64 `json:"data_segs_out"`
	DataSegsIn    uint64 `json:"data_segs_in"`
	RcvOOOPack    uint64 `json:"rcv_ooopack"` // segments received out of order
	OutOfOrder    int    `json:"early"`       // ranges received out of order
	ECNMarks      uint64 `json:"ecn_marks"`   // segments that arrived with the CE mark
	Probes        int    `json:"probes"`      // unanswered window probes
	Unread        int    `json:"unread"`      // bytes received but not read

	// Limited is what limits the data in flight: "app", "cwnd", "rwnd", "sndbuf", "pacing",
	// "nagle", "cork", "persist", "recovery", "handshake", "idle" or "none". LimitedFor is how long
	// this reason has applied; it is 0 for a program's connection, because the kernel does not
	// report it.
	Limited    string        `json:"limited"`
	LimitedFor time.Duration `json:"limited_for_ns"`
	// BusyTime is the time with data to send. Parts of it are RwndLimited, spent waiting for the
	// peer's window, and SndbufLimited, for room in the send buffer.
	BusyTime      time.Duration `json:"busy_time_ns"`
	RwndLimited   time.Duration `json:"rwnd_limited_ns"`
	SndbufLimited time.Duration `json:"sndbuf_limited_ns"`
	// NotSentBytes is the number of bytes written but not sent. SndBuf and RcvBuf are current
	// buffer sizes, RcvSpace is the most that the program read in one RcvRTT.
	NotSentBytes int           `json:"notsent_bytes"`
	SndBuf       int           `json:"send_buffer"`
	RcvBuf       int           `json:"recv_buffer"`
	RcvSpace     int           `json:"rcv_space"`
	RcvRTT       time.Duration `json:"rcv_rtt_ns"`
	LastDataSent time.Duration `json:"last_sent_ns"`     // time since data was last sent
	LastDataRecv time.Duration `json:"last_received_ns"` // time since data was last received
	LastAckRecv  time.Duration `json:"last_ack_ns"`      // time since an ACK was last received
}

// Info returns the recovery's part. The recovery must not be idle.
func (v *Recovery) Info() Info {
	q := &v.Record
	i := Info{
		CAState: v.Episode.String(), CongestionControl: v.CC.Name, Strategy: v.strategy.name,
		RTO: v.timeout(), RTT: v.RTT.SRTT, RTTVar: v.RTT.rttvar, MinRTT: v.RTT.lowest(),
		LatestRTT: v.RTT.latest, RTTSamples: v.RTT.samples, Pipe: v.Pipe(),
		Unacked: q.len(), Sacked: q.count[sacked], Lost: q.count[lost], Retrans: q.retransmitted,
		BytesRetrans: v.Kept.bytesRetrans, Counts: v.Kept.Counts, Delivered: v.losses.segments,
		DeliveredBytes: q.delivered,
		DeliveryRate:   uint64(v.rate.bytes) * 8, DeliveryRateAppLimited: v.rate.appLimited,
		TotalRTORecoveries: v.Kept.timeouts.count, TotalRTOTime: v.Kept.timeouts.total,
		Retransmits: int(v.Retries), Backoff: int(v.Backoff),
	}
	if cc := v.CC.Controller; cc != nil {
		i.PipeACK = max(v.rounds.window.bins[0], v.rounds.window.bins[1])
		i.SndCwnd, i.SndSsthresh = cc.Cwnd(), cc.Ssthresh()
		i.PacingRate = uint64(v.pacingRate()) * 8
	}
	return i
}
