package figure

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrNoSamples is the error of a figure or file without samples.
var ErrNoSamples = errors.New("no samples")

// Sample is a row of a probe file: the state of a connection at one instant.
type Sample struct {
	Seconds     float64 // time since the node started
	SID         int
	Cwnd        float64       // congestion window in bytes
	Ssthresh    float64       // slow-start threshold in bytes; huge: not set yet
	RTT         time.Duration // smoothed RTT; 0: not measured yet
	MinRTT      time.Duration
	RTO         time.Duration
	InFlight    float64 // data in flight in bytes
	Acked       float64 // acknowledged bytes of the stream
	Sent        float64 // bytes of the stream that were sent at least once
	Retransmits int     // number of retransmitted segments so far
	Timeouts    int     // number of retransmission timeouts so far
	TailProbes  int
}

func (s *Sample) fields() map[string]any {
	return map[string]any{
		"seconds": &s.Seconds, "sid": &s.SID, "cwnd": &s.Cwnd, "ssthresh": &s.Ssthresh,
		"rtt_ms": &s.RTT, "minrtt_ms": &s.MinRTT, "rto_ms": &s.RTO, "in_flight": &s.InFlight,
		"acked": &s.Acked, "sent": &s.Sent, "retrans": &s.Retransmits, "rtos": &s.Timeouts,
		"tlps": &s.TailProbes,
	}
}

func read(to any, field string) error {
	if n, ok := to.(*int); ok {
		v, err := strconv.Atoi(field)
		*n = v
		return err
	}
	v, err := strconv.ParseFloat(field, 64)
	most := math.MaxFloat64
	switch to := to.(type) {
	case *time.Duration:
		most = math.MaxInt64 / float64(time.Millisecond) / 2
		*to = time.Duration(v * float64(time.Millisecond))
	case *float64:
		*to = v
	}
	if err == nil && !(math.Abs(v) <= most) {
		err = strconv.ErrRange
	}
	return err
}

// ReadSamples reads a probe file: a header line with the names of the columns, and a row for each
// acknowledgment. The columns may be in any order, and unknown columns are allowed. It skips an
// incomplete last row, which occurs while the node runs or when its disk was full.
func ReadSamples(r io.Reader) ([]Sample, error) {
	in := bufio.NewScanner(r)
	if !in.Scan() {
		return nil, fmt.Errorf("probe file: %w", cmp.Or(in.Err(), ErrNoSamples))
	}
	var s Sample // fields of one row
	var to []any // the field for each column; nil: an unknown column
	fields := s.fields()
	all := len(fields)
	for name := range strings.SplitSeq(strings.TrimSpace(in.Text()), ",") {
		to = append(to, fields[name])
		delete(fields, name)
	}
	if len(fields) > 0 {
		return nil, fmt.Errorf("probe file: line 1: only %d of %d required columns: %q",
			all-len(fields), all, in.Text())
	}
	var samples []Sample
	var broken error // error of the previous row; ignored for the last row
	for line := 2; in.Scan(); line++ {
		if broken != nil {
			return samples, broken
		}
		if err := readRow(to, in.Text()); err != nil {
			broken = fmt.Errorf("probe file: line %d: %w", line, err)
			continue
		}
		samples = append(samples, s)
	}
	if err := in.Err(); err != nil {
		return samples, fmt.Errorf("probe file: %w", err)
	}
	return samples, nil
}

func readRow(to []any, row string) error {
	fields := strings.Split(strings.TrimSuffix(row, "\r"), ",")
	if len(fields) != len(to) {
		return fmt.Errorf("must have %d fields: %q", len(to), row)
	}
	for i, field := range fields {
		if to[i] == nil {
			continue
		}
		if err := read(to[i], field); err != nil {
			return fmt.Errorf("field %d: %w", i+1, err)
		}
	}
	return nil
}

// MeanRTT returns the mean round-trip time of a transfer, in which each round trip counts once: the
// duration of the transfer, divided by the number of round trips at the smoothed RTT of each
// moment. A mean over acknowledgments would overweight busy moments, and a mean over time would
// overweight stalls. MeanRTT is 0 without measurements.
func MeanRTT(samples []Sample) time.Duration {
	var span, rounds float64
	var last time.Duration
	for i := range samples {
		if i > 0 && last > 0 {
			if dt := samples[i].Seconds - samples[i-1].Seconds; dt > 0 {
				span += dt
				rounds += dt / last.Seconds()
			}
		}
		last = samples[i].RTT
	}
	if rounds == 0 {
		return max(last, 0)
	}
	return time.Duration(span / rounds * float64(time.Second))
}
