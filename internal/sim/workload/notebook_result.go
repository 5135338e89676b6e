package workload

import (
	"fmt"
	"time"
)

// NotebookResult is the result of a sender. The document prints the first five.
type NotebookResult struct {
	TotalAcks, DuplicateAcks int
	DuplicatePercent         float64
	// Throughput is 80 bytes for each acknowledgment that said something new, a second: the
	// document's count, in which a segment has 80 bytes whatever it has.
	Throughput float64
	// MeanRTT is of what the sender measured, whose send times are those that the receiver
	// stored.
	MeanRTT time.Duration

	// Finished says that the sender has run for its time; Failure says what happened if not.
	Finished bool
	Failure  string
	// Took is how long it has run.
	Took time.Duration
	// MinRTT and MaxRTT are the least and the most that was measured; LastRTT the last.
	MinRTT, MaxRTT, LastRTT time.Duration
	// NewAcks are the acknowledgments that said something new.
	NewAcks int
	// Sent counts the sender's segments and SentBytes their IP packets' bytes; Again those
	// of a number that was sent before.
	Sent, SentBytes, Again uint64
	// Delivered is the number of segments that the receiver has without a gap, by its own count,
	// and DeliveredBytes their datagrams' payload. Acks and AckBytes are its acknowledgments.
	Delivered, DeliveredBytes uint64
	Acks, AckBytes            uint64
	// Garbage counts datagrams that were no message, and Overflowed those that the
	// receiver's socket had no room for.
	Garbage, Overflowed uint64
	Cwnd, Ssthresh      int // segments, at the end
	MaxCwnd             int
	// Points are of all acknowledgments, if Config.Record is set.
	Points []Point
}

// Point is what an acknowledgment left behind.
type Point struct {
	At             time.Duration // since the sender began
	Seq            int           // what it named
	RTT            time.Duration // 0: it said nothing new
	Cwnd, Ssthresh int           // segments
}

// averageSegmentSize is the document's.
const averageSegmentSize = 80

// headers are IP's and UDP's.
const headers = 28

// Text returns the results as the document prints them.
func (r *NotebookResult) Text(port uint16) string {
	return fmt.Sprintf("Results for sender %d:\nTotal Acks: %d\nNum Duplicate Acks: %d\n"+
		"%% duplicate acks: %f\nThroughput (bytes/s): %f\nAverage RTT (ms): %f\n",
		port, r.TotalAcks, r.DuplicateAcks, r.DuplicatePercent, r.Throughput,
		r.MeanRTT.Seconds()*1000)
}

// fill completes what the ledger knows, of a run that is to take d.
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
