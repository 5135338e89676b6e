package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Info is a snapshot of a connection under the names of Linux's TCP_INFO,
// where it has one.
type Info struct {
	State      State
	Recovery   string // CAState: open, recovery, loss
	Congestion string
	Strategy   string // of loss recovery: gbn, newreno, sack, rack
	// SACK, WindowScale and Timestamps were negotiated; Plain says that no option was.
	SACK, WindowScale, Timestamps, Plain bool
	// ECN was negotiated. ECNMarks counts the segments that arrived marked, ECNEchoes the
	// reductions for echoes of the peer's.
	ECN                 bool
	ECNMarks, ECNEchoes uint64

	SendScale, RecvScale     uint8
	RTO, RTT, RTTVar, MinRTT time.Duration
	LatestRTT                time.Duration
	SendMSS, RecvMSS, PMTU   int
	Cwnd, Ssthresh           int // bytes
	SendWindow, RecvWindow   int
	Pipe                     int    // bytes in flight
	Una, Nxt, RcvNxt         uint64 // stream offsets
	// What is outstanding, in segments.
	Unacked, Sacked, Lost int
	// NotSent is what waits in Tx and was never sent; Unread what waits in Rx; OutOfOrder how
	// many ranges arrived early.
	NotSent, Unread, OutOfOrder int

	BytesSent, BytesAcked, BytesRetrans, BytesReceived uint64
	SegsOut, SegsIn, DataSegsOut, DataSegsIn           uint64
	Delivered                                          uint64 // segments
	DeliveryRate, PacingRate                           int64  // bytes a second
	PipeACK                                            int    // RFC 7661 §4.1, bytes; 0: undefined
	Retransmits, LostRetransmits, FastRecoveries       uint64
	Undone                                             uint64 // recoveries that were spurious
	Timeouts, TailProbes, WindowProbes                 uint64
	DSACKs, DupAcks, ReorderSeen                       uint64
	Retries                                            int // time-outs since the last answer

	Limited      Limit
	LimitedSince clock.Time
	// When the last segment with text was sent and received, and the last ACK; never: not yet.
	LastSent, LastReceived, LastAck clock.Time
}

// Info returns the connection's state.
func (c *Conn) Info() Info {
	s := &c.stats
	i := Info{
		State: c.State(), Recovery: recoveryNames[c.rec.kind], Congestion: c.cc.name,
		Strategy: c.how.name,
		SACK:     c.has(flagSACK), WindowScale: c.has(flagScale), Timestamps: c.has(flagStamps),
		Plain: c.has(flagPlain),
		ECN:   c.has(flagECN), ECNMarks: c.ecn.marks, ECNEchoes: c.ecn.echoes,
		SendScale: c.snd.scale, RecvScale: c.rcv.scale,
		RTO: c.rtt.timeout(s.backoff, &c.host.cfg), RTT: c.rtt.srtt, RTTVar: c.rtt.rttvar,
		MinRTT: c.rtt.lowest(), LatestRTT: c.rtt.latest,
		SendMSS: c.snd.mss, RecvMSS: c.rcv.mss, PMTU: c.path.MTU,
		SendWindow: c.snd.wnd, RecvWindow: int(c.rcv.edge - c.rcv.nxt),
		Pipe: c.pipe(), Una: streamed(c.snd.una, c.snd.iss), Nxt: streamed(c.snd.nxt, c.snd.iss),
		Unacked: c.sent.len(), Sacked: c.sent.count[sacked], Lost: c.sent.count[lost],
		Unread: c.rx.Len(), OutOfOrder: c.rcv.ooo.Len(),
		BytesSent: s.bytesSent, BytesAcked: s.bytesAcked, BytesRetrans: s.bytesRetrans,
		BytesReceived: s.bytesReceived, SegsOut: s.segsOut, SegsIn: s.segsIn,
		DataSegsOut: s.dataSegsOut, DataSegsIn: s.dataSegsIn, Delivered: s.delivered,
		DeliveryRate: c.limit.rate, Retransmits: s.retransmits,
		LostRetransmits: s.lostRetransmits, FastRecoveries: s.fastRecoveries, Undone: s.undone,
		Timeouts: s.timeouts, TailProbes: s.tailProbes, WindowProbes: s.windowProbes,
		DSACKs: s.dsacks, DupAcks: s.dupAcksIn, ReorderSeen: s.reordered, Retries: s.retries,
		Limited: c.limit.by, LimitedSince: c.limit.since,
		RcvNxt:   streamed(c.rcv.nxt, c.rcv.irs),
		LastSent: s.lastSent, LastReceived: s.lastReceived, LastAck: s.lastAck,
	}
	if c.cc.Controller != nil {
		i.PipeACK = max(c.limit.use.bins[0], c.limit.use.bins[1])
		i.Cwnd, i.Ssthresh, i.PacingRate = c.cc.Cwnd(), c.cc.Ssthresh(), c.pacingRate()
	}
	if c.state.synchronized() {
		i.NotSent = c.unsent()
	} else {
		i.NotSent = c.tx.Len()
	}
	return i
}
