package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// arrival is one step: a segment arrives, or the application reads.
type arrival struct {
	Offset int // relative to the peer's first byte; may be negative
	Len    int
	FIN    bool // the FIN follows the payload
	Read   bool // the application reads
}

// These limits of a step keep sequence numbers from wrapping around.
const (
	maxOffset = 1 << 28
	maxLen    = 65495
)

// documentArrivals are the three kinds of arrivals in founding document 001, and more cases.
var documentArrivals = []arrival{
	{Offset: 1360, Len: 1360},            // inside the window
	{Offset: 66000, Len: 1360},           // after the end of the window
	{Offset: 0, Len: 1360},               // the next expected byte
	{Offset: 5440, Len: 1360},            // inside the window, after a larger gap
	{Offset: 5440, Len: 1360},            // a repetition of the last arrival
	{Offset: 2000, Len: 1360},            // partly duplicate
	{Offset: 0, Len: 1360},               // duplicate data
	{Offset: 8160, FIN: true},            // an out-of-order FIN
	{Offset: 3360, Len: 2080},            // fills the first gap
	{Read: true},                         // opens the window
	{Offset: 6800, Len: 1360, FIN: true}, // fills the last gap
	{Read: true},
}

// parseArrival parses OFFSET+LENGTH, optionally with an F at the end for a FIN, or the word read.
func parseArrival(text string) (arrival, error) {
	if text == "read" {
		return arrival{Read: true}, nil
	}
	rest, fin := strings.CutSuffix(text, "F")
	offset, length, ok := strings.Cut(rest, "+")
	if !ok {
		return arrival{}, fmt.Errorf("%q: must be OFFSET+LENGTH, like 1360+1360 or 0+0F, or read",
			text)
	}
	o, err := strconv.Atoi(offset)
	if err != nil || o < -maxOffset || o > maxOffset {
		return arrival{}, fmt.Errorf("offset %q of %q: must be %d to %d",
			offset, text, -maxOffset, maxOffset)
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > maxLen {
		return arrival{}, fmt.Errorf("length %q of %q: must be 0 to %d bytes", length, text, maxLen)
	}
	return arrival{Offset: o, Len: n, FIN: fin}, nil
}

func (s *arrival) what() string {
	switch {
	case s.FIN && s.Len > 0:
		return counted(s.Len, "byte") + " and FIN"
	case s.FIN:
		return "FIN"
	}
	return counted(s.Len, "byte")
}

// arrivalVerdict explains the kind of an arrival. r is the receiver's state before the arrival.
func arrivalVerdict(r *tcp.Reassembly, kind tcp.Arrival, s arrival) string {
	next := int(r.Next) - firstSeq // relative to the peer's first byte
	edge := next + r.Window
	start, end := s.Offset, s.Offset+s.Len
	switch kind {
	case tcp.ArrivalNext:
		if start < next {
			return fmt.Sprintf("expected next: %d duplicate bytes, then new ones; RCV.NXT is "+
				"among them", next-start) + cut(end, edge)
		}
		return "expected next: it begins at RCV.NXT" + cut(end, edge)
	case tcp.ArrivalEarly:
		return fmt.Sprintf("inside the window: queued, because %d bytes before it are missing",
			start-next) + cut(end, edge)
	case tcp.ArrivalOutside:
		return beyond(edge)
	case tcp.ArrivalOld:
		if end <= next {
			return "duplicate: all of it is before RCV.NXT"
		}
		return "duplicate: all of it is already queued"
	case tcp.ArrivalEnded:
		return afterFIN
	case tcp.ArrivalEmpty:
	}
	switch {
	case !s.FIN:
		return "no data: only its acknowledgment is used"
	case r.Closed && end >= next:
		return afterFIN
	case end < next:
		return "duplicate: the FIN is before RCV.NXT"
	case end == next:
		return "expected next: the FIN ends the peer's stream"
	case end > edge:
		return beyond(edge)
	}
	return fmt.Sprintf("inside the window: the FIN is queued, because %d bytes before it are "+
		"missing", end-next)
}

// afterFIN is the verdict on data after a FIN.
const afterFIN = "after the FIN: ignored, because no data follows a FIN"

func beyond(edge int) string {
	return fmt.Sprintf("beyond the window: dropped, because the window ends at %d", firstSeq+edge)
}

func cut(end, edge int) string {
	if end <= edge {
		return ""
	}
	return fmt.Sprintf("; the last %d are beyond the window and dropped", end-edge)
}
