package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Info is a snapshot of a connection: what Linux's struct tcp_info holds, under
// its names, which the comments give where they differ by more than spelling.
// Windows are bytes where Linux counts segments, times are time.Duration where
// it counts micro- or milliseconds. What it has of fast open, of MPTCP and of
// rehashing has no meaning here.
type Info struct {
	State      State
	Recovery   string // ca_state: open, recovery or loss
	Congestion string // TCP_CONGESTION
	Strategy   string // of loss recovery: gbn, newreno, sack, rack
	// options: SACK, WindowScale, Timestamps and ECN were negotiated; Plain says that nothing was.
	SACK, WindowScale, Timestamps, ECN, Plain bool
	// ECNMarks counts the segments that arrived marked, ECNEchoes the reductions for echoes of
	// the peer's (delivered_ce, as far as RFC 3168 tells).
	ECNMarks, ECNEchoes uint64

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
	Delivered                                          uint64 // segments
	DeliveryRate, PacingRate                           int64  // bytes a second
	PipeACK                                            int    // RFC 7661 §4.2, bytes; 0: undefined
	AppLimited                                         bool   // delivery_rate_app_limited
	Retransmits                                        uint64 // total_retrans
	LostRetransmits, FastRecoveries                    uint64
	Undone                                             uint64        // spurious recoveries
	Timeouts, TailProbes, WindowProbes                 uint64        // total_rto, …
	TimeoutEpisodes                                    uint64        // total_rto_recoveries
	TimeoutTime                                        time.Duration // total_rto_time
	DSACKs, DupAcks, ReorderSeen                       uint64        // dsack_dups, …, reord_seen
	Retries                                            int           // since the last answer
	Backoff                                            int           // doublings of the time-out
	Probes                                             int           // window probes unanswered

	Limited      Limit
	LimitedSince clock.Time
	// BusyTime is how long there was something to send or to be acknowledged; of it RwndLimited
	// was spent waiting for the peer's window and SndbufLimited for room in the send buffer.
	BusyTime, RwndLimited, SndbufLimited time.Duration
	// When the last segment with text was sent and received, and the last ACK; never: not yet.
	LastSent, LastReceived, LastAck clock.Time
}

// Info returns the connection's state.
func (c *Conn) Info() Info {
	if c.rests() {
		c.busy()
		defer c.rest()
	}
	s, b, r := &c.stats, &c.rec.lasting, &c.rcv
	i := Info{
		State: c.State(), Recovery: recoveryNames[c.rec.ep.kind], Congestion: c.rec.cc.name,
		Strategy: c.rec.how.name,
		SACK:     c.rcv.sack, WindowScale: c.has(flagScale), Timestamps: c.has(flagStamps),
		ECN: c.has(flagECN), Plain: c.has(flagPlain),
		ECNMarks: r.marks, ECNEchoes: c.rec.lasting.counts.ECNEchoes,
		SendScale: c.snd.scale, RecvScale: r.scale,
		RTO: c.rec.timeout(), RTT: c.rec.rtt.srtt, RTTVar: c.rec.rtt.rttvar,
		MinRTT: c.rec.rtt.lowest(), LatestRTT: c.rec.rtt.latest, ATO: c.host.cfg.DelayedAck,
		SendMSS: c.snd.mss, RecvMSS: r.mss, AdvMSS: c.offeredMSS(), PMTU: c.path.MTU,
		SendWindow: c.snd.wnd, RecvWindow: r.window(),
		Pipe: c.rec.pipe(),
		Una:  streamed(c.snd.una, c.snd.iss), Nxt: streamed(c.snd.nxt, c.snd.iss),
		RcvNxt:  streamed(r.nxt, r.irs),
		Unacked: c.rec.sent.len(), Sacked: c.rec.sent.count[sacked], Lost: c.rec.sent.count[lost],
		Retrans: c.rec.sent.again,
		Unread:  r.rx.Len(), OutOfOrder: r.reassembly.ooo.Len(), OutOfOrderSegs: r.early,
		SendBuffer: c.snd.tx.Limit(), RecvBuffer: r.tune.size, RecvSpace: r.tune.copied,
		RecvRTT:     r.tune.rtt,
		UserTimeout: c.wait.limit,
		BytesSent:   s.bytesSent, BytesAcked: s.bytesAcked, BytesRetrans: b.bytesRetrans,
		BytesReceived: r.bytes, SegsOut: s.segsOut, SegsIn: s.segsIn,
		DataSegsOut: s.dataSegsOut, DataSegsIn: s.dataSegsIn, Delivered: c.rec.segments,
		DeliveryRate: c.rec.rate, AppLimited: c.rec.is.rateLimited,
		Retransmits: b.counts.Retransmits, LostRetransmits: b.counts.LostRetransmits,
		FastRecoveries: b.counts.FastRecoveries, Undone: b.counts.Undone,
		Timeouts: b.counts.Timeouts, TailProbes: b.counts.TailProbes,
		WindowProbes:    b.counts.WindowProbes,
		TimeoutEpisodes: b.spells.count, TimeoutTime: b.spells.total,
		DSACKs: b.counts.DSACKs, DupAcks: b.counts.DupAcks, ReorderSeen: b.counts.ReorderSeen,
		Retries: int(c.rec.retries), Backoff: int(c.rec.backoff), Probes: int(c.snd.probes),
		Limited: c.limit.by, LimitedSince: c.limit.since,
		LastSent: c.rec.lastSent, LastReceived: r.heardAt, LastAck: s.lastAck,
	}
	i.BusyTime, i.RwndLimited, i.SndbufLimited = c.limit.times(c.host.now)
	if c.rec.cc.Controller == nil && c.state.synchronized() {
		c.rec.begin(c.congestionConfig()) // who looks on sees its window before it is used
	}
	if c.rec.cc.Controller != nil {
		i.PipeACK = max(c.rec.rounds.window.bins[0], c.rec.rounds.window.bins[1])
		i.Cwnd, i.Ssthresh, i.PacingRate = c.rec.cc.Cwnd(), c.rec.cc.Ssthresh(), c.rec.pacingRate()
	}
	if c.state.synchronized() {
		i.NotSent = c.snd.unsent()
	} else {
		i.NotSent = c.snd.tx.Len()
	}
	return i
}
