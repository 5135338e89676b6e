package ns3

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// read parses the driver's output.
func read(from io.Reader, cell *plan.Cell, trial int, record bool) (
	*result.Trial, *result.Record, error,
) {
	hash := fnv.New64a()
	from = io.TeeReader(from, hash)
	t := &result.Trial{
		Cell: cell.Index, Trial: trial, Seed: runOf(cell, trial), Virtual: cell.Duration,
		Whole: result.Values{},
	}
	r := &result.Record{
		Title: simulation.Title(cell, trial) + ", ns-3", Duration: cell.Duration,
		RTT: cell.Path.Down.Delay + cell.Path.Up.Delay,
	}
	if cell.Path.Down.Rate != nil {
		r.Rate = float64(cell.Path.Down.Rate.MeanRate())
	}
	for i := range cell.Flows {
		f := &cell.Flows[i]
		t.Flows = append(t.Flows, result.Flow{
			Name: f.Name, Label: simulation.Label(f), Finished: true, Values: result.Values{},
		})
		r.Flows = append(r.Flows, result.FlowRecord{
			Name: f.Name, Label: simulation.Label(f), Start: f.Start, Upward: f.Upward, MSS: f.MSS,
			RTT: r.RTT + 4*f.Delay, //nolint:mnd // the links of both hosts, in both directions
		})
	}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if err := line(fields, t, r); err != nil {
			return nil, nil, fmt.Errorf("ns-3's driver printed %q: %w", lines.Text(), err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, err
	}
	for i := range t.Flows {
		_, done := t.Flows[i].Values[result.Completion]
		if cell.Flows[i].App.Size > 0 && !done {
			t.Flows[i].Finished, t.Flows[i].Note = false, "the transfer did not end"
		}
	}
	t.Hash = hash.Sum64()
	t.AddUp()
	if !record {
		r = nil
	}
	return t, r, nil
}

// line parses a line: "flow I METRIC VALUE …", "link NAME METRIC VALUE …", sample or progress.
func line(fields []string, t *result.Trial, r *result.Record) error {
	const head = 2
	if len(fields) < head {
		return fmt.Errorf("must have at least %d fields", head)
	}
	var values result.Values
	switch fields[0] {
	case "events":
		return nil
	case "link":
		if fields[1] != "down" {
			return nil
		}
		values = t.Whole
	case "flow", "sample", "progress":
		i, err := strconv.Atoi(fields[1])
		if err != nil || i < 0 || i >= len(t.Flows) {
			return fmt.Errorf("unknown flow %s", fields[1])
		}
		switch fields[0] {
		case "sample":
			return sample(fields[head:], &r.Flows[i])
		case "progress":
			return progress(fields[head:], &r.Flows[i])
		}
		values = t.Flows[i].Values
	default:
		return fmt.Errorf("unknown line")
	}
	for i := head; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i+1], 64)
		if err != nil {
			return err
		}
		values[result.Metric(fields[i])] = v
	}
	return nil
}

func numbers(fields []string, to []float64) (err error) {
	if len(fields) != len(to) {
		return fmt.Errorf("must have %d numbers", len(to))
	}
	for i := range to {
		if to[i], err = strconv.ParseFloat(fields[i], 64); err != nil {
			return err
		}
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// sample parses a sender's state: time, cwnd, ssthresh, round trip, data in flight.
func sample(fields []string, f *result.FlowRecord) error {
	var v [5]float64
	if err := numbers(fields, v[:]); err != nil {
		return err
	}
	f.Samples = append(f.Samples, result.Sample{
		At: seconds(v[0]), Cwnd: int(v[1]), Ssthresh: int(v[2]), RTT: seconds(v[3]),
		SRTT: seconds(v[3]), InFlight: int(v[4]), State: "open",
	})
	return nil
}

// progress parses what the application has received: time, bytes.
func progress(fields []string, f *result.FlowRecord) error {
	var v [2]float64
	if err := numbers(fields, v[:]); err != nil {
		return err
	}
	f.Progress = append(f.Progress, result.Point{At: seconds(v[0]), Value: v[1]})
	return nil
}
