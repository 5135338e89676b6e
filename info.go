package tidepool

import (
	"time"
)

// ConnInfo is what a connection knows of itself and of its path, in the terms of
// Linux's TCP_INFO.
type ConnInfo struct {
	State             string // RFC 9293 §3.3.2's name, with underscores
	CongestionControl string
	Recovery          string // open, disorder, recovery or loss

	SACK, Timestamps, ECN bool // agreed on in the handshake
	SendScale, RecvScale  int  // of the windows; -1: not agreed on

	RTT, RTTVar, MinRTT, RTO time.Duration

	MSS, PMTU              int // bytes
	Cwnd, Ssthresh         int // bytes; Ssthresh is 0 until a loss
	SendWindow, RecvWindow int // bytes that each end may still send

	BytesSent, BytesRetrans   uint64
	BytesAcked, BytesReceived uint64
	SegsOut, SegsIn           uint64
	DeliveryRate, PacingRate  uint64 // bits per second; PacingRate is 0 without pacing

	Unacked, Lost, Sacked int // segments in flight, and of these
	Retransmits, Timeouts uint64

	// Limited is why no more is in flight: app, cwnd, rwnd, sndbuf or idle; and
	// LimitedFor since when.
	Limited    string
	LimitedFor time.Duration
}

// Info returns the connection's state. It fails once the connection has ended.
func (c *Conn) Info() (ConnInfo, error) {
	s, err := c.conn.Socket()
	if err != nil || s.Info == nil {
		return ConnInfo{State: s.State}, err
	}
	i := s.Info
	return ConnInfo{
		State: s.State, CongestionControl: i.Congestion, Recovery: i.Recovery,
		SACK: i.SACK, Timestamps: i.Timestamps, ECN: i.ECN,
		SendScale: i.SendScale, RecvScale: i.RecvScale,
		RTT: i.RTT, RTTVar: i.RTTVar, MinRTT: i.MinRTT, RTO: i.RTO,
		MSS: i.MSS, PMTU: i.PMTU, Cwnd: i.Cwnd, Ssthresh: i.Ssthresh,
		SendWindow: i.SendWindow, RecvWindow: i.RecvWindow,
		BytesSent: i.BytesSent, BytesRetrans: i.BytesRetrans,
		BytesAcked: i.BytesAcked, BytesReceived: i.BytesReceived,
		SegsOut: i.SegsOut, SegsIn: i.SegsIn,
		DeliveryRate: i.DeliveryRate, PacingRate: i.PacingRate,
		Unacked: i.Unacked, Lost: i.Lost, Sacked: i.Sacked,
		Retransmits: i.Retransmits, Timeouts: i.Timeouts,
		Limited: i.Limited, LimitedFor: i.LimitedFor,
	}, nil
}
