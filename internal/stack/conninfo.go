package stack

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// ConnInfo converts a connection's state to that of package control.
func ConnInfo(i tcp.Info, now clock.Time) *control.Info {
	since := func(t clock.Time) time.Duration {
		if t == clock.Never || now == clock.Never {
			return 0
		}
		return now.Sub(t)
	}
	c := &control.Info{
		Recovery: i.Recovery, Congestion: i.Congestion, SACK: i.SACK,
		Strategy: i.Strategy, Undone: i.Undone,
		SendScale: -1, RecvScale: -1,
		RTO: i.RTO, RTT: i.RTT, RTTVar: i.RTTVar, MinRTT: i.MinRTT,
		Backoff: i.Backoff, ATO: i.ATO, RecvMSS: i.RecvMSS, AdvMSS: i.AdvMSS,
		Timestamps: i.Timestamps, ECN: i.ECN,
		MSS: i.SendMSS, PMTU: i.PMTU, Cwnd: i.Cwnd, Ssthresh: i.Ssthresh,
		SendWindow: i.SendWindow, RecvWindow: i.RecvWindow,
		BytesSent: i.BytesSent, BytesAcked: i.BytesAcked, BytesRetrans: i.BytesRetrans,
		BytesReceived: i.BytesReceived, SegsOut: i.SegsOut, SegsIn: i.SegsIn,
		Delivered: i.Delivered, DeliveryRate: uint64(i.DeliveryRate) * 8,
		PacingRate: uint64(i.PacingRate) * 8, AppLimited: i.AppLimited,
		DataSegsOut: i.DataSegsOut, DataSegsIn: i.DataSegsIn,
		Retrans: i.Retrans, DSACKs: i.DSACKs, ReorderSeen: i.ReorderSeen,
		OutOfOrder: i.OutOfOrderSegs, NotSent: i.NotSent, SendBuffer: i.SendBuffer,
		RecvBuffer: i.RecvBuffer, RecvSpace: i.RecvSpace, RecvRTT: i.RecvRTT,
		BusyTime: i.BusyTime, RwndLimited: i.RwndLimited, SndbufLimited: i.SndbufLimited,
		Unacked: i.Unacked, Lost: i.Lost, Sacked: i.Sacked, Retransmits: i.Retransmits,
		Timeouts: i.Timeouts, TailProbes: i.TailProbes, WindowProbes: i.WindowProbes,
		Plain: i.Plain, LatestRTT: i.LatestRTT, Pipe: i.Pipe, PipeACK: i.PipeACK,
		LostRetransmits: i.LostRetransmits, FastRecoveries: i.FastRecoveries,
		TimeoutEpisodes: i.TimeoutEpisodes, TimeoutTime: i.TimeoutTime, DupAcks: i.DupAcks,
		Retries: i.Retries, Probes: i.Probes, Early: i.OutOfOrder,
		ECNMarks: i.ECNMarks, ECNEchoes: i.ECNEchoes, UserTimeout: i.UserTimeout,
		Unread:  i.Unread,
		Limited: i.Limited.String(), LimitedFor: since(i.LimitedSince),
		LastSent: since(i.LastSent), LastReceived: since(i.LastReceived), LastAck: since(i.LastAck),
	}
	if i.WindowScale {
		c.SendScale, c.RecvScale = int(i.SendScale), int(i.RecvScale)
	}
	return c
}
