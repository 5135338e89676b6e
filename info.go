package tidepool

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// ConnInfo is what a connection knows of itself and of its path, in the terms of
// Linux's TCP_INFO.
type ConnInfo struct {
	State             string // RFC 9293 §3.3.2's name, with underscores
	CongestionControl string
	Strategy          string // of loss recovery: gbn, newreno, sack or rack
	Recovery          string // open, recovery or loss

	// Agreed on in the handshake; Plain: nothing was.
	SACK, Timestamps, ECN, Plain bool
	SendScale, RecvScale         int // of the windows; -1: not agreed on

	RTT, RTTVar, MinRTT, RTO time.Duration
	LatestRTT                time.Duration // the last sample
	ATO                      time.Duration // how long an acknowledgment may wait
	UserTimeout              time.Duration // 0: none

	MSS, RecvMSS, AdvMSS, PMTU int // bytes; AdvMSS is what our SYN offered
	Cwnd, Ssthresh             int // bytes; Ssthresh is 0 until a loss
	PipeACK                    int // RFC 7661 §4.2, bytes; 0: undefined
	SendWindow, RecvWindow     int // bytes that each end may still send
	Pipe                       int // bytes in flight
	NotSent, Unread            int // bytes that wait to be sent, and to be read
	SendBuffer, RecvBuffer     int // bytes, as they are now

	RecvRTT   time.Duration // the round trip as the receiver sees it
	RecvSpace int           // the most that was read in one, bytes

	BytesSent, BytesRetrans   uint64
	BytesAcked, BytesReceived uint64
	SegsOut, SegsIn           uint64
	DataSegsOut, DataSegsIn   uint64
	Delivered                 uint64 // segments
	DeliveryRate, PacingRate  uint64 // bits per second; PacingRate is 0 without pacing
	AppLimited                bool   // DeliveryRate is the application's, not the path's

	// Segments in flight, and of these: thought lost, reported received, sent again.
	Unacked, Lost, Sacked, Retrans int
	Retransmits, LostRetransmits   uint64
	FastRecoveries, Undone         uint64 // Undone: recoveries that were not needed
	Timeouts, TimeoutEpisodes      uint64
	TimeoutTime                    time.Duration // from a first time-out to the next delivery
	TailProbes, WindowProbes       uint64
	Retries, Backoff, Probes       int    // time-outs and window probes since the last answer
	DSACKs, DupAcks, ReorderSeen   uint64 // what the peer had twice, reported, got in disorder
	OutOfOrder                     int    // ranges held that came early
	OutOfOrderSegs                 uint64 // segments that ever did
	ECNMarks, ECNEchoes            uint64 // segments marked; reductions for marks of ours

	// Limited is why no more is in flight: app, cwnd, rwnd, sndbuf, pacing, nagle, cork,
	// persist, recovery, handshake, idle or none; LimitedFor is since when.
	Limited    string
	LimitedFor time.Duration
	// BusyTime is how long there was something to send; of it RwndLimited was spent
	// waiting for the peer's window, SndbufLimited for room in the send buffer.
	BusyTime, RwndLimited, SndbufLimited time.Duration
	// Since text was sent, text was received, an ACK was received; 0: never.
	SinceSent, SinceReceived, SinceAck time.Duration
}

// Info returns the connection's state, after its end the last. It fails once the
// node is closed.
func (c *Conn) Info() (ConnInfo, error) {
	s, err := c.inner().Socket()
	if err != nil {
		return ConnInfo{}, err
	}
	return connInfo(s.State, s.Info), nil
}

func connInfo(state string, i *control.Info) ConnInfo {
	return ConnInfo{
		State:             state,
		CongestionControl: i.Congestion, Strategy: i.Strategy, Recovery: i.Recovery,
		SACK: i.SACK, Timestamps: i.Timestamps, ECN: i.ECN,
		Plain: i.Plain, SendScale: i.SendScale, RecvScale: i.RecvScale,
		RTT: i.RTT, RTTVar: i.RTTVar, MinRTT: i.MinRTT, RTO: i.RTO, LatestRTT: i.LatestRTT,
		ATO: i.ATO, UserTimeout: i.UserTimeout,
		MSS: i.MSS, RecvMSS: i.RecvMSS, AdvMSS: i.AdvMSS, PMTU: i.PMTU,
		Cwnd: i.Cwnd, Ssthresh: i.Ssthresh, PipeACK: i.PipeACK,
		SendWindow: i.SendWindow, RecvWindow: i.RecvWindow, Pipe: i.Pipe,
		NotSent: i.NotSent, Unread: i.Unread,
		SendBuffer: i.SendBuffer, RecvBuffer: i.RecvBuffer,
		RecvRTT: i.RecvRTT, RecvSpace: i.RecvSpace,
		BytesSent: i.BytesSent, BytesRetrans: i.BytesRetrans,
		BytesAcked: i.BytesAcked, BytesReceived: i.BytesReceived,
		SegsOut: i.SegsOut, SegsIn: i.SegsIn,
		DataSegsOut: i.DataSegsOut, DataSegsIn: i.DataSegsIn, Delivered: i.Delivered,
		DeliveryRate: i.DeliveryRate, PacingRate: i.PacingRate,
		AppLimited: i.AppLimited,
		Unacked:    i.Unacked, Lost: i.Lost, Sacked: i.Sacked, Retrans: i.Retrans,
		Retransmits: i.Retransmits, LostRetransmits: i.LostRetransmits,
		FastRecoveries: i.FastRecoveries, Undone: i.Undone,
		Timeouts: i.Timeouts, TimeoutEpisodes: i.TimeoutEpisodes, TimeoutTime: i.TimeoutTime,
		TailProbes: i.TailProbes, WindowProbes: i.WindowProbes,
		Retries: i.Retries, Backoff: i.Backoff, Probes: i.Probes,
		DSACKs: i.DSACKs, DupAcks: i.DupAcks, ReorderSeen: i.ReorderSeen,
		OutOfOrder: i.Early, OutOfOrderSegs: i.OutOfOrder,
		ECNMarks: i.ECNMarks, ECNEchoes: i.ECNEchoes,
		Limited: i.Limited, LimitedFor: i.LimitedFor,
		BusyTime: i.BusyTime, RwndLimited: i.RwndLimited, SndbufLimited: i.SndbufLimited,
		SinceSent: i.LastSent, SinceReceived: i.LastReceived,
		SinceAck: i.LastAck,
	}
}
