package workload

import "time"

// NotebookResult is the result of a sender. The document prints the first five fields.
type NotebookResult struct {
	TotalAcks, DuplicateAcks int
	DuplicatePercent         float64
	// Throughput is 80 bytes per second for each new acknowledgment: the document counts 80 bytes
	// for each segment, whatever its size.
	Throughput float64
	// MeanRTT is the mean of the sender's measurements. They begin at the send times that the
	// receiver stored.
	MeanRTT time.Duration

	// Finished means that the sender has run for its time. Otherwise Failure has the reason.
	Finished bool
	Failure  string
	// Took is the time for which the sender has run.
	Took time.Duration
	// MinRTT and MaxRTT are the minimum and the maximum of the measurements.
	MinRTT, MaxRTT time.Duration
	// NewAcks counts the acknowledgments of new segments.
	NewAcks int
	// Sent counts the sender's segments, and Again counts the retransmissions.
	Sent, Again uint64
	// DeliveredBytes is the payload of the segments that the receiver has without a gap. Acks
	// counts its acknowledgments, and Overflowed counts the datagrams for which its socket had no
	// room.
	DeliveredBytes, Acks, Overflowed uint64
	MaxCwnd                          int // maximum congestion window in segments
	// Points has all acknowledgments, if NotebookConfig.Record is set.
	Points []Point
}

// Point is the state after an acknowledgment.
type Point struct {
	At             time.Duration // time since the start of the sender
	RTT            time.Duration // round-trip time; 0: not a new segment
	Cwnd, Ssthresh int           // congestion window and threshold in segments
}

// averageSegmentSize is the document's constant.
const averageSegmentSize = 80

// fill adds the values of the sender's state, for a run of duration d.
func (r *NotebookResult) fill(l *SenderState, d time.Duration) {
	r.TotalAcks, r.DuplicateAcks, r.NewAcks = l.TotalAcks, l.DuplicateAcks, l.AckCount
	if l.TotalAcks > 0 {
		r.DuplicatePercent = float64(l.DuplicateAcks) * 100 / float64(l.TotalAcks)
	}
	if l.RTTs > 0 {
		r.MeanRTT = seconds(l.RTT / float64(l.RTTs))
	}
	if d > 0 {
		r.Throughput = averageSegmentSize * float64(l.AckCount) / d.Seconds()
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }
