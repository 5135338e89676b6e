package iperf

import (
	"encoding/json"
	"fmt"
	"math"
)

// Results are the results of one end. Percentages refer to one processor.
type Results struct {
	CPUTotal  float64 `json:"cpu_util_total"`
	CPUUser   float64 `json:"cpu_util_user"`
	CPUSystem float64 `json:"cpu_util_system"`
	// Retransmits is 1 if the sender knows its retransmissions, 0 if it does not, and -1 if this
	// end does not send.
	Retransmits Number         `json:"sender_has_retransmits"`
	Congestion  string         `json:"congestion_used,omitempty"`
	Streams     []StreamResult `json:"streams"`
}

// StreamResult is one end's result of a stream. Errors counts lost datagrams.
type StreamResult struct {
	ID             Number  `json:"id"`
	Bytes          Number  `json:"bytes"`
	Retransmits    Number  `json:"retransmits"` // retransmitted segments; -1: not known
	Jitter         float64 `json:"jitter"`      // jitter in seconds
	Errors         Number  `json:"errors"`
	OmittedErrors  Number  `json:"omitted_errors"`
	Packets        Number  `json:"packets"`
	OmittedPackets Number  `json:"omitted_packets"`
	Start          float64 `json:"start_time"`
	End            float64 `json:"end_time"` // end time in seconds
}

// ParseResults parses the other end's results, for the given number of streams.
func ParseResults(text []byte, streams int) (r Results, err error) {
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%w: results: %s", ErrMessage, describeJSONError(err))
	}
	if len(r.Streams) != streams {
		return r, fmt.Errorf("%w: results of %d streams: must be %d", ErrMessage, len(r.Streams),
			streams)
	}
	seen := map[Number]bool{}
	for i := range r.Streams {
		s := &r.Streams[i]
		switch {
		case seen[s.ID]:
			return r, fmt.Errorf("%w: two results of stream %d", ErrMessage, s.ID)
		case s.Bytes < 0 || s.Packets < 0:
			return r, fmt.Errorf("%w: stream %d: %d bytes, %d packets: must not be negative",
				ErrMessage, s.ID, s.Bytes, s.Packets)
		case !(s.End >= 0 && s.End <= 2*MaxSeconds) || math.IsNaN(s.Jitter):
			return r, fmt.Errorf("%w: stream %d: end time %v s: must be 0 to %d s; jitter %v: "+
				"must be a number", ErrMessage, s.ID, s.End, 2*MaxSeconds, s.Jitter)
		}
		seen[s.ID] = true
	}
	if len(r.Congestion) > 64 {
		r.Congestion = r.Congestion[:64]
	}
	return r, nil
}

// Of returns a stream's result.
func (r *Results) Of(id int) (StreamResult, bool) {
	for i := range r.Streams {
		if r.Streams[i].ID == Number(id) {
			return r.Streams[i], true
		}
	}
	return StreamResult{}, false
}
