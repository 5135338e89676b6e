package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Info is a snapshot of a connection: what Linux's struct tcp_info holds, under
// its names, which the comments give where they differ by more than spelling.
// Windows are bytes where Linux counts segments, times are time.Duration where
// it counts micro- or milliseconds. What it has of fast open, of MPTCP and of
// rehashing has no meaning here.
type Info struct {
	Time       clock.Time // when it was so
	State      State
	Recovery   string // ca_state: open, recovery or loss
	Congestion string // TCP_CONGESTION
	Strategy   string // of loss recovery: gbn, newreno, sack, rack
	// options: SACK, WindowScale, Timestamps and ECN were negotiated; Plain says that nothing was.
	SACK, WindowScale, Timestamps, ECN, Plain bool
	ECNMarks                                  uint64 // segments that arrived marked (delivered_ce)

	SendScale, RecvScale     uint8 // snd_wscale, rcv_wscale
	RTO, RTT, RTTVar, MinRTT time.Duration
	LatestRTT                time.Duration
	ATO                      time.Duration // how long an acknowledgment may wait
	SendMSS, RecvMSS         int           // snd_mss, rcv_mss
	AdvMSS, PMTU             int           // advmss: what our SYN offered; pmtu
	Cwnd, Ssthresh           int           // snd_cwnd, snd_ssthresh: bytes
	SendWindow, RecvWindow   int           // snd_wnd, rcv_wnd
	Pipe                     int           // bytes in flight
	Una, Nxt, RcvNxt         uint64        // stream offsets

	// What is outstanding, in segments; Retrans are those of them that were sent again.
	Unacked, Sacked, Lost, Retrans int
	// NotSent is what waits in Tx and was never sent (notsent_bytes); Unread what waits in Rx;
	// OutOfOrder how many ranges arrived early, OutOfOrderSegs how many segments ever
	// (rcv_ooopack).
	NotSent, Unread, OutOfOrder int
	OutOfOrderSegs              uint64
	// SendBuffer and RecvBuffer are the buffers as they are now (rcv_ssthresh). RecvRTT is the
	// round trip as a receiver sees it (rcv_rtt), RecvSpace the most that was read in one
	// (rcv_space).
	SendBuffer, RecvBuffer, RecvSpace int
	RecvRTT                           time.Duration
	UserTimeout                       time.Duration // TCP_USER_TIMEOUT; zero: none

	BytesSent, BytesAcked, BytesRetrans, BytesReceived uint64
	SegsOut, SegsIn, DataSegsOut, DataSegsIn           uint64
	Delivered, DeliveredBytes                          uint64 // Delivered is in segments
	RTTSamples                                         uint64 // measurements of the round trip
	DeliveryRate, PacingRate                           int64  // bytes a second; 0: no pacing
	PipeACK                                            int    // RFC 7661 §4.2, bytes; 0: undefined
	AppLimited                                         bool   // delivery_rate_app_limited
	Counts
	TimeoutEpisodes uint64        // total_rto_recoveries
	TimeoutTime     time.Duration // total_rto_time
	Retries         int           // since the last answer
	Backoff         int           // doublings of the time-out
	Probes          int           // window probes unanswered

	Limited      Limit
	LimitedSince clock.Time
	// BusyTime is how long there was something to send or to be acknowledged; of it RwndLimited
	// was spent waiting for the peer's window and SndbufLimited for room in the send buffer.
	BusyTime, RwndLimited, SndbufLimited time.Duration
	// When the last segment with text was sent and received, and the last ACK; never: not yet.
	LastSent, LastReceived, LastAck clock.Time
}

// Counts are events of a connection, under Linux's names where they differ.
type Counts struct {
	Retransmits, Timeouts    uint64 // total_retrans, total_rto
	TailProbes, WindowProbes uint64
	LostRetransmits          uint64
	FastRecoveries           uint64
	Undone                   uint64 // spurious recoveries
	DupAcks, DSACKs          uint64 // DSACKs: dsack_dups
	ReorderSeen              uint64
	ECNEchoes                uint64 // reductions for marks that the peer told of
}

// Info returns the connection's state. One that has not sent anything yet has no congestion
// controller: it shows the initial window (RFC 5681 §3.1).
func (c *Conn) Info() Info {
	if c.rests() {
		c.busy()
		defer c.rest()
	}
	var i Info
	c.fill(&i)
	if c.rec.cc.Controller == nil && c.state.synchronized() {
		cfg := c.rec.complete(congestion.Config{})
		i.Cwnd, i.Ssthresh = cfg.InitialWindow, cfg.MaxWindow
	}
	return i
}

// fill writes the connection's state into i.
func (c *Conn) fill(i *Info) {
	s, v, r, q := &c.stats, &c.rec, &c.rcv, &c.rec.sent
	*i = Info{
		Time: c.host.now, State: c.State(), Recovery: recoveryNames[v.ep.kind],
		Congestion: v.cc.name, Strategy: v.how.name,
		SACK: r.sack, WindowScale: c.has(flagScale), Timestamps: c.has(flagStamps),
		ECN: c.has(flagECN), Plain: c.has(flagPlain), ECNMarks: r.marks,
		SendScale: c.snd.scale, RecvScale: r.scale,
		RTO: v.timeout(), RTT: v.rtt.srtt, RTTVar: v.rtt.rttvar, MinRTT: v.rtt.lowest(),
		LatestRTT: v.rtt.latest, RTTSamples: v.rtt.samples, ATO: c.host.cfg.DelayedAck,
		SendMSS: c.snd.mss, RecvMSS: r.mss, AdvMSS: c.offeredMSS(), PMTU: c.path.MTU,
		SendWindow: c.snd.wnd, RecvWindow: r.window(), Pipe: v.pipe(),
		Una: streamed(c.snd.una, c.snd.iss), Nxt: streamed(c.snd.nxt, c.snd.iss),
		RcvNxt:  streamed(r.nxt, r.irs),
		Unacked: q.len(), Sacked: q.count[sacked], Lost: q.count[lost], Retrans: q.again,
		NotSent: c.snd.tx.Len(), Unread: r.rx.Len(),
		OutOfOrder: r.reassembly.ooo.Len(), OutOfOrderSegs: r.early,
		SendBuffer: c.snd.tx.Limit(), RecvBuffer: r.tune.size, RecvSpace: r.tune.copied,
		RecvRTT: r.tune.rtt, UserTimeout: c.wait.limit,
		BytesSent: s.bytesSent, BytesAcked: s.bytesAcked, BytesRetrans: v.lasting.bytesRetrans,
		BytesReceived: r.bytes, SegsOut: s.segsOut, SegsIn: s.segsIn,
		DataSegsOut: s.dataSegsOut, DataSegsIn: s.dataSegsIn,
		Delivered: v.segments, DeliveredBytes: q.delivered,
		DeliveryRate: v.rate, AppLimited: v.is.rateLimited, Counts: v.lasting.counts,
		TimeoutEpisodes: v.lasting.spells.count, TimeoutTime: v.lasting.spells.total,
		Retries: int(v.retries), Backoff: int(v.backoff), Probes: int(c.snd.probes),
		Limited: c.limit.by, LimitedSince: c.limit.since,
		LastSent: v.lastSent, LastReceived: r.heardAt, LastAck: s.lastAck,
	}
	i.BusyTime, i.RwndLimited, i.SndbufLimited = c.limit.times(c.host.now)
	if v.cc.Controller != nil {
		i.PipeACK = max(v.rounds.window.bins[0], v.rounds.window.bins[1])
		i.Cwnd, i.Ssthresh, i.PacingRate = v.cc.Cwnd(), v.cc.Ssthresh(), v.pacingRate()
	}
	if c.state.synchronized() {
		i.NotSent = c.snd.unsent()
	}
}
