package workload

import (
	"fmt"
	"time"
)

// NotebookResult is the result of a sender. The document prints the first five fields.
type NotebookResult struct {
	TotalAcks, DuplicateAcks int
	DuplicatePercent         float64
	// Throughput is 80 bytes per second for each new acknowledgment: the document counts 80 bytes
	// for each segment, whatever its size.
	Throughput float64
	// MeanRTT is the mean of the sender's measurements. Their send times are those that the
	// receiver stored.
	MeanRTT time.Duration

	// Finished says that the sender has run for its time; otherwise Failure has the reason.
	Finished bool
	Failure  string
	// Took is how long it has run.
	Took time.Duration
	// MinRTT, MaxRTT and LastRTT are the minimum, the maximum and the last of the measurements.
	MinRTT, MaxRTT, LastRTT time.Duration
	// NewAcks counts the acknowledgments of new segments.
	NewAcks int
	// Sent counts the sender's segments, SentBytes the bytes of their IP packets, and Again the
	// retransmissions.
	Sent, SentBytes, Again uint64
	// Delivered is the number of segments that the receiver has without a gap, by its own count,
	// and DeliveredBytes their payload. Acks and AckBytes are its acknowledgments.
	Delivered, DeliveredBytes uint64
	Acks, AckBytes            uint64
	// Garbage counts invalid datagrams, and Overflowed those that the receiver's socket had no room
	// for.
	Garbage, Overflowed uint64
	Cwnd, Ssthresh      int // segments, at the end
	MaxCwnd             int
	// Points has all acknowledgments, if Config.Record is set.
	Points []Point
}

// Point is the state after an acknowledgment.
type Point struct {
	At             time.Duration // since the sender began
	Seq            int           // the acknowledged segment
	RTT            time.Duration // 0: not a new segment
	Cwnd, Ssthresh int           // segments
}

// averageSegmentSize is the document's constant.
const averageSegmentSize = 80

// headers is the size of the headers of IP and UDP.
const headers = 28

// Text returns the results as the document prints them.
func (r *NotebookResult) Text(port uint16) string {
	return fmt.Sprintf("Results for sender %d:\nTotal Acks: %d\nNum Duplicate Acks: %d\n"+
		"%% duplicate acks: %f\nThroughput (bytes/s): %f\nAverage RTT (ms): %f\n",
		port, r.TotalAcks, r.DuplicateAcks, r.DuplicatePercent, r.Throughput,
		r.MeanRTT.Seconds()*1000)
}

// fill adds the ledger's values, for a run of duration d.
func (r *NotebookResult) fill(l *Ledger, d time.Duration) {
	r.TotalAcks, r.DuplicateAcks, r.NewAcks = l.TotalAcks, l.DuplicateAcks, l.AckCount
	r.Cwnd, r.Ssthresh = l.Cwnd, l.Ssthresh
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
