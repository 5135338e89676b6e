package tidepool

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// ConnInfo is what a connection knows of itself and of its path. What Linux's TCP_INFO
// has bears its name here too, in Go's form: tcpi_snd_cwnd is SndCwnd. Windows are in
// bytes where Linux counts segments, rates are in bits per second.
type ConnInfo struct {
	// State is RFC 9293 §3.3.2's name, with underscores.
	State string
	// CAState is where loss recovery stands: open, recovery or loss.
	CAState string
	// CongestionControl is the algorithm's name, and Strategy that of loss recovery: gbn,
	// newreno, sack or rack.
	CongestionControl, Strategy string

	// SACK, Timestamps and ECN were agreed on in the handshake; Plain: nothing was.
	SACK, Timestamps, ECN, Plain bool
	// SndWScale and RcvWScale are the shifts of the windows; -1: not agreed on.
	SndWScale, RcvWScale int

	// RTT and RTTVar are RFC 6298's smoothed round trip and its variation, MinRTT the
	// shortest lately, LatestRTT the last; 0: none was measured.
	RTT, RTTVar, MinRTT, LatestRTT time.Duration
	// RTO is the retransmission time-out, ATO how long an acknowledgment may wait.
	RTO, ATO time.Duration
	// UserTimeout is SetUserTimeout's; 0: none.
	UserTimeout time.Duration

	// SndMSS and RcvMSS are the payload of segments sent and received, AdvMSS what our SYN
	// offered, PMTU the largest packet that the path takes, all in bytes.
	SndMSS, RcvMSS, AdvMSS, PMTU int
	// SndCwnd and SndSsthresh are the congestion window and where slow start ends, in
	// bytes; a threshold of 0: no loss has set one.
	SndCwnd, SndSsthresh int
	// PipeACK is what was in flight lately at the most (RFC 7661 §4.2), in bytes; 0:
	// undefined.
	PipeACK int
	// SndWnd and RcvWnd are how many bytes each end has been told that it may send.
	SndWnd, RcvWnd int
	// Pipe is how many bytes are in flight (RFC 6675).
	Pipe int
	// NotSentBytes wait to be sent for the first time, and Unread to be read.
	NotSentBytes, Unread int
	// SndBuf and RcvBuf are the buffers as they are now, in bytes.
	SndBuf, RcvBuf int
	// RcvRTT is the round trip as the receiver sees it, and RcvSpace the most that was
	// read in one, in bytes.
	RcvRTT   time.Duration
	RcvSpace int

	// BytesSent counts what BytesRetrans does too, BytesAcked what the peer has.
	BytesSent, BytesRetrans, BytesAcked, BytesReceived uint64
	// SegsOut and SegsIn count segments, DataSegsOut and DataSegsIn those with text.
	SegsOut, SegsIn, DataSegsOut, DataSegsIn uint64
	// Delivered counts segments that the peer has reported, in order or not.
	Delivered uint64
	// DeliveryRate is how fast they were lately, PacingRate how fast they may leave, in
	// bits per second; 0: not measured, and not paced.
	DeliveryRate, PacingRate uint64
	// DeliveryRateAppLimited says that the rate is the application's, not the path's.
	DeliveryRateAppLimited bool

	// Unacked counts the segments in flight; of these Lost are thought lost, Sacked were
	// reported received, Retrans sent again.
	Unacked, Lost, Sacked, Retrans int
	// TotalRetrans counts the segments that were ever sent again, LostRetransmits those of
	// them that were lost too.
	TotalRetrans, LostRetransmits uint64
	// FastRecoveries counts recoveries without a time-out, Undone those of all that were
	// not needed.
	FastRecoveries, Undone uint64
	// TotalRTO counts retransmission time-outs, TotalRTORecoveries the silences that they
	// were in, and TotalRTOTime how long those were.
	TotalRTO, TotalRTORecoveries uint64
	TotalRTOTime                 time.Duration
	// TailProbes and WindowProbes count those of RFC 8985 §7 and RFC 9293 §3.8.6.1.
	TailProbes, WindowProbes uint64
	// Retransmits, Backoff and Probes are the time-outs, their doublings and the window
	// probes since the last answer.
	Retransmits, Backoff, Probes int
	// DSACKDups counts what the peer had twice, DupAcks its duplicate acknowledgments, and
	// ReordSeen what it got in disorder.
	DSACKDups, DupAcks, ReordSeen uint64
	// OutOfOrder is how many ranges are held that came early, RcvOOOPack how many segments
	// ever did.
	OutOfOrder int
	RcvOOOPack uint64
	// ECNMarks counts segments that came marked, ECNEchoes reductions for marks of ours.
	ECNMarks, ECNEchoes uint64

	// Limited is why no more is in flight: app, cwnd, rwnd, sndbuf, pacing, nagle, cork,
	// persist, recovery, handshake, idle or none; LimitedFor is since when.
	Limited    string
	LimitedFor time.Duration
	// BusyTime is how long there was something to send; of it RwndLimited was spent
	// waiting for the peer's window, SndbufLimited for room in the send buffer.
	BusyTime, RwndLimited, SndbufLimited time.Duration
	// LastDataSent, LastDataRecv and LastAckRecv are how long ago that was; 0: never.
	LastDataSent, LastDataRecv, LastAckRecv time.Duration
}

// String returns the most of it in a line, as ss -ti does.
func (i ConnInfo) String() string {
	var b strings.Builder
	word := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	b.WriteString(i.State)
	word("%s", i.CongestionControl)
	if i.SndWScale >= 0 {
		word("wscale:%d,%d", i.SndWScale, i.RcvWScale)
	}
	word("rto:%v rtt:%v/%v mss:%d pmtu:%d cwnd:%d", i.RTO, i.RTT, i.RTTVar, i.SndMSS, i.PMTU,
		i.SndCwnd)
	if i.SndSsthresh > 0 {
		word("ssthresh:%d", i.SndSsthresh)
	}
	word("bytes_sent:%d bytes_acked:%d bytes_received:%d", i.BytesSent, i.BytesAcked,
		i.BytesReceived)
	if i.TotalRetrans > 0 {
		word("retrans:%d/%d", i.Retrans, i.TotalRetrans)
	}
	word("pipe:%d notsent:%d unread:%d snd_wnd:%d rcv_wnd:%d delivery_rate:%dbps limited:%s",
		i.Pipe, i.NotSentBytes, i.Unread, i.SndWnd, i.RcvWnd, i.DeliveryRate, i.Limited)
	return b.String()
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
		CongestionControl: i.Congestion, Strategy: i.Strategy, CAState: i.Recovery,
		SACK: i.SACK, Timestamps: i.Timestamps, ECN: i.ECN,
		Plain: i.Plain, SndWScale: i.SendScale, RcvWScale: i.RecvScale,
		RTT: i.RTT, RTTVar: i.RTTVar, MinRTT: i.MinRTT, RTO: i.RTO, LatestRTT: i.LatestRTT,
		ATO: i.ATO, UserTimeout: i.UserTimeout,
		SndMSS: i.MSS, RcvMSS: i.RecvMSS, AdvMSS: i.AdvMSS, PMTU: i.PMTU,
		SndCwnd: i.Cwnd, SndSsthresh: i.Ssthresh, PipeACK: i.PipeACK,
		SndWnd: i.SendWindow, RcvWnd: i.RecvWindow, Pipe: i.Pipe,
		NotSentBytes: i.NotSent, Unread: i.Unread,
		SndBuf: i.SendBuffer, RcvBuf: i.RecvBuffer,
		RcvRTT: i.RecvRTT, RcvSpace: i.RecvSpace,
		BytesSent: i.BytesSent, BytesRetrans: i.BytesRetrans,
		BytesAcked: i.BytesAcked, BytesReceived: i.BytesReceived,
		SegsOut: i.SegsOut, SegsIn: i.SegsIn,
		DataSegsOut: i.DataSegsOut, DataSegsIn: i.DataSegsIn, Delivered: i.Delivered,
		DeliveryRate: i.DeliveryRate, PacingRate: i.PacingRate,
		DeliveryRateAppLimited: i.AppLimited,
		Unacked:                i.Unacked, Lost: i.Lost, Sacked: i.Sacked, Retrans: i.Retrans,
		TotalRetrans: i.Retransmits, LostRetransmits: i.LostRetransmits,
		FastRecoveries: i.FastRecoveries, Undone: i.Undone,
		TotalRTO: i.Timeouts, TotalRTORecoveries: i.TimeoutEpisodes, TotalRTOTime: i.TimeoutTime,
		TailProbes: i.TailProbes, WindowProbes: i.WindowProbes,
		Retransmits: i.Retries, Backoff: i.Backoff, Probes: i.Probes,
		DSACKDups: i.DSACKs, DupAcks: i.DupAcks, ReordSeen: i.ReorderSeen,
		OutOfOrder: i.Early, RcvOOOPack: i.OutOfOrder,
		ECNMarks: i.ECNMarks, ECNEchoes: i.ECNEchoes,
		Limited: i.Limited, LimitedFor: i.LimitedFor,
		BusyTime: i.BusyTime, RwndLimited: i.RwndLimited, SndbufLimited: i.SndbufLimited,
		LastDataSent: i.LastSent, LastDataRecv: i.LastReceived,
		LastAckRecv: i.LastAck,
	}
}
