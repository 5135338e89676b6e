package figure

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrNoSamples is the error of a figure, or of a file, without anything in it.
var ErrNoSamples = errors.New("no samples")

// Sample is what one row of a probe file says of a connection at one instant.
type Sample struct {
	Seconds     float64 // since the node started
	SID         int
	Cwnd        float64       // bytes
	Ssthresh    float64       // bytes; as large as its type allows: not set yet
	RTT         time.Duration // smoothed; 0: not measured yet
	MinRTT      time.Duration
	RTO         time.Duration
	InFlight    float64 // bytes
	Acked       float64 // bytes of the stream that the peer has acknowledged
	Sent        float64 // bytes of the stream that were sent at least once
	Retransmits int     // retransmitted segments, so far
	Timeouts    int     // retransmission timeouts, so far
	TailProbes  int
}

// columns are the fields that Sample keeps, by the names of the probe file's header line. Times are
// in milliseconds.
var columns = map[string]func(s *Sample) any{
	"seconds":   func(s *Sample) any { return &s.Seconds },
	"sid":       func(s *Sample) any { return &s.SID },
	"cwnd":      func(s *Sample) any { return &s.Cwnd },
	"ssthresh":  func(s *Sample) any { return &s.Ssthresh },
	"rtt_ms":    func(s *Sample) any { return &s.RTT },
	"minrtt_ms": func(s *Sample) any { return &s.MinRTT },
	"rto_ms":    func(s *Sample) any { return &s.RTO },
	"in_flight": func(s *Sample) any { return &s.InFlight },
	"acked":     func(s *Sample) any { return &s.Acked },
	"sent":      func(s *Sample) any { return &s.Sent },
	"retrans":   func(s *Sample) any { return &s.Retransmits },
	"rtos":      func(s *Sample) any { return &s.Timeouts },
	"tlps":      func(s *Sample) any { return &s.TailProbes },
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

// ReadSamples reads a probe file: a header line that names the columns, in any order and with
// others between them, and a row an acknowledgment. The last row may be cut off, as it is while the
// node still runs or when its disk was full; it is left out then.
func ReadSamples(r io.Reader) ([]Sample, error) {
	in := bufio.NewScanner(r)
	if !in.Scan() {
		if err := in.Err(); err != nil {
			return nil, fmt.Errorf("probe file: %w", err)
		}
		return nil, fmt.Errorf("probe file: %w", ErrNoSamples)
	}
	header := strings.Split(strings.TrimSpace(in.Text()), ",")
	fields := make([]func(*Sample) any, len(header))
	known := 0
	for i, name := range header {
		if fields[i] = columns[name]; fields[i] != nil {
			known++
		}
	}
	if known < len(columns) {
		return nil, fmt.Errorf("probe file: line 1: only %d of the %d columns that are needed: %q",
			known, len(columns), in.Text())
	}
	var samples []Sample
	var broken error // of the row before: no error if it was the last
	for line := 2; in.Scan(); line++ {
		if broken != nil {
			return samples, broken
		}
		s, err := readRow(fields, in.Text())
		if err != nil {
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

func readRow(fields []func(*Sample) any, row string) (Sample, error) {
	var s Sample
	rest := strings.TrimSuffix(row, "\r")
	for i, of := range fields {
		field, after, more := strings.Cut(rest, ",")
		if more != (i < len(fields)-1) {
			return s, fmt.Errorf("want %d fields: %q", len(fields), row)
		}
		rest = after
		if of == nil {
			continue
		}
		if err := read(of(&s), field); err != nil {
			return s, fmt.Errorf("field %d: %w", i+1, err)
		}
	}
	return s, nil
}

// MeanRTT is the mean round-trip time of a transfer, each round trip counted once: its duration
// divided by how many round trips fit into it at the smoothed RTT of each moment. A mean over
// acknowledgments would count busy moments more than others, and one over time would count a stall
// as long as it lasted. It is 0 where nothing was measured.
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
