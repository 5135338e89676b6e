// Package report is what comes out of the measurements: lines of JSON, a table, a page with
// figures, and a file in the format of Go's benchmarks for benchstat to compare two commits by.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// Row is one comparison, in the middle of its runs.
type Row struct {
	Case  string  `json:"case"`
	Ours  float64 `json:"ours"`
	Peer  string  `json:"peer"`
	Their float64 `json:"theirs"`
	Ratio float64 `json:"ratio"` // ours to theirs
	Unit  string  `json:"unit"`
	// Goal is what the ratio should be: at least, or at most where LessIsBetter; 0: none.
	Goal         float64 `json:"goal,omitempty"`
	LessIsBetter bool    `json:"less_is_better,omitempty"`

	OursRuns  []float64 `json:"ours_runs,omitempty"`
	TheirRuns []float64 `json:"theirs_runs,omitempty"`
	Measured  Measured  `json:"-"`
	Ends
	// Bound is 1.31/√p · MSS/RTT in the case's unit, with our RTT in ms; 0: nothing is lost.
	Bound float64 `json:"bound,omitempty"`
	RTTms float64 `json:"rtt_ms,omitempty"`
	// Counts of our sender, the runs' means.
	RTOs            *float64 `json:"rtos,omitempty"`
	TailProbes      *float64 `json:"tail_probes,omitempty"`
	Retransmits     *float64 `json:"retransmits,omitempty"`
	LostRetransmits *float64 `json:"lost_retransmits,omitempty"`
	Spurious        *float64 `json:"spurious,omitempty"`
	Drops           *float64 `json:"own_drops,omitempty"`

	Note string `json:"note,omitempty"`
}

// Measured says which runs of ours a row compares: several rows may share them.
type Measured struct {
	Case          string
	Send, Receive []float64 // the CPU time of both ends in each run, ns a byte
}

// Ends is the CPU of both ends' processes, ns a byte: ours, and theirs as far as a process tells
// it, for the kernel works for others, too.
type Ends struct {
	SendNs         float64 `json:"send_ns_per_byte,omitempty"`
	ReceiveNs      float64 `json:"receive_ns_per_byte,omitempty"`
	TheirSendNs    float64 `json:"their_send_ns_per_byte,omitempty"`
	TheirReceiveNs float64 `json:"their_receive_ns_per_byte,omitempty"`
}

// Weigh notes at the rows of one case which goals nothing in Go could have reached in this run: the
// data plane without a protocol is the plane's row, if there is one, and did less.
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

// Skipped is a case that cannot be measured here.
type Skipped struct {
	Case string `json:"case"`
	Peer string `json:"peer,omitempty"`
	Skip string `json:"skip"` // "needs X"
}

// Line writes a row, or a case that was skipped, as a line.
func Line(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // it is read in terminals, and by jq
	return e.Encode(v)
}

// Round rounds to four digits that count.
func Round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		panic("BUG: bench: a number that is none: " + err.Error())
	}
	return short
}
