// Package report holds the results of the measurements and writes them: as lines of JSON, a table,
// a page with figures, and a file in the format of Go's benchmarks, with which benchstat compares
// two commits.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// Row is one comparison. Its figures are the medians of the runs.
type Row struct {
	Case  string  `json:"case"`
	Ours  float64 `json:"ours"`
	Peer  string  `json:"peer"`
	Their float64 `json:"theirs"`
	Ratio float64 `json:"ratio"` // our figure divided by theirs
	Unit  string  `json:"unit"`
	// Goal is the minimum ratio, or the maximum if LessIsBetter; 0: no goal.
	Goal         float64 `json:"goal,omitempty"`
	LessIsBetter bool    `json:"less_is_better,omitempty"`

	OursRuns  []float64 `json:"ours_runs,omitempty"`
	TheirRuns []float64 `json:"theirs_runs,omitempty"`
	Measured  Measured  `json:"-"`
	Ends
	// Bound is 1.31/√p · MSS/RTT in the case's unit, computed with our RTT; 0: the path has no
	// loss.
	Bound float64 `json:"bound,omitempty"`
	RTTms float64 `json:"rtt_ms,omitempty"`
	// Counters of our sender, as means over the runs.
	RTOs            *float64 `json:"rtos,omitempty"`
	TailProbes      *float64 `json:"tail_probes,omitempty"`
	Retransmits     *float64 `json:"retransmits,omitempty"`
	LostRetransmits *float64 `json:"lost_retransmits,omitempty"`
	Spurious        *float64 `json:"spurious,omitempty"`
	Drops           *float64 `json:"own_drops,omitempty"`

	Note string `json:"note,omitempty"`
}

// Measured identifies the runs of ours that a row compares; several rows may share them.
type Measured struct {
	Case          string
	Send, Receive []float64 // CPU time of each end in each run, in ns per byte
}

// Ends has the CPU time of both ends' processes in ns per byte: ours, and theirs if it is known.
// The kernel does part of its work outside the process.
type Ends struct {
	SendNs         float64 `json:"send_ns_per_byte,omitempty"`
	ReceiveNs      float64 `json:"receive_ns_per_byte,omitempty"`
	TheirSendNs    float64 `json:"their_send_ns_per_byte,omitempty"`
	TheirReceiveNs float64 `json:"their_receive_ns_per_byte,omitempty"`
}

// Weigh marks those goals of a case that no Go program could have reached in this run, because even
// the data plane without a protocol was slower. It takes the plane's speed from the plane's row, if
// there is one.
func Weigh(rows []Row) {
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Peer == "plane" })
	if i < 0 {
		return
	}
	ceiling := rows[i].Their
	for i := range rows {
		r := &rows[i]
		if r.Verdict() == "MISSED" && r.Goal*r.Their > ceiling {
			r.Note = fmt.Sprintf("goal above the plane's ceiling of this run: %s × %s > %s",
				Figure(r.Goal), Figure(r.Their), Figure(ceiling))
		}
	}
}

// Skipped is a case that cannot be measured on this machine.
type Skipped struct {
	Case string `json:"case"`
	Peer string `json:"peer,omitempty"`
	Skip string `json:"skip"` // such as "needs X"
}

// Line writes a row or a skipped case as a line of JSON.
func Line(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // because people and jq read the line
	return e.Encode(v)
}

// Round rounds to four significant digits.
func Round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		panic("BUG: bench: round a number: " + err.Error())
	}
	return short
}
