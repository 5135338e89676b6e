package recovery

import "time"

// Info is a snapshot of a recovery: its part of Linux's struct tcp_info, with the same names. The
// comments give Linux's names where they differ by more than spelling. Windows are in bytes where
// Linux counts segments.
type Info struct {
	Recovery   string // ca_state: open, recovery or loss
	Congestion string // TCP_CONGESTION
	Strategy   string // loss recovery: one of Names

	RTO, RTT, RTTVar, MinRTT time.Duration
	LatestRTT                time.Duration
	RTTSamples               uint64 // number of round trip samples
	Cwnd, Ssthresh           int    // snd_cwnd, snd_ssthresh: bytes
	Pipe                     int    // bytes in flight (RFC 6675 §4)

	// Unacked, Sacked and Lost count outstanding segments; Retrans counts those that were
	// retransmitted.
	Unacked, Sacked, Lost, Retrans int

	BytesRetrans              uint64
	Delivered, DeliveredBytes uint64 // Delivered is in segments
	DeliveryRate, PacingRate  int64  // bytes a second; 0: no pacing
	PipeACK                   int    // RFC 7661 §4.2, bytes; 0: undefined
	AppLimited                bool   // delivery_rate_app_limited
	Counts
	TimeoutEpisodes uint64        // total_rto_recoveries
	TimeoutTime     time.Duration // total_rto_time
	Retries         int           // timeouts since the last answer
	Backoff         int           // doublings of the RTO
}

// Info returns the snapshot. The recovery must not be idle.
func (v *Recovery) Info() Info {
	q := &v.Record
	i := Info{
		Recovery: v.Episode.String(), Congestion: v.CC.Name, Strategy: v.how.name,
		RTO: v.timeout(), RTT: v.RTT.SRTT, RTTVar: v.RTT.rttvar, MinRTT: v.RTT.lowest(),
		LatestRTT: v.RTT.latest, RTTSamples: v.RTT.samples, Pipe: v.Pipe(),
		Unacked: q.len(), Sacked: q.count[sacked], Lost: q.count[lost], Retrans: q.again,
		BytesRetrans: v.Kept.bytesRetrans, Counts: v.Kept.Counts, Delivered: v.losses.segments,
		DeliveredBytes: q.delivered, DeliveryRate: v.rate.bytes, AppLimited: v.rate.appLimited,
		TimeoutEpisodes: v.Kept.spells.count, TimeoutTime: v.Kept.spells.total,
		Retries: int(v.Retries), Backoff: int(v.Backoff),
	}
	if cc := v.CC.Controller; cc != nil {
		i.PipeACK = max(v.rounds.window.bins[0], v.rounds.window.bins[1])
		i.Cwnd, i.Ssthresh, i.PacingRate = cc.Cwnd(), cc.Ssthresh(), v.pacingRate()
	}
	return i
}
