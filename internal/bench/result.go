package main

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// result is one figure of all runs.
type result struct {
	sample        // of the last run; value is not used
	name   string // of the measurement, with what behind it
	values []float64
	notes  []string // one a run
}

// gather adds a run's figure to the result it belongs to.
func gather(all []result, name string, s sample) []result {
	if s.what != "" {
		name += ", " + s.what
	}
	at := slices.IndexFunc(all, func(r result) bool { return r.name == name })
	if at < 0 {
		all = append(all, result{name: name})
		at = len(all) - 1
	}
	r := &all[at]
	r.sample = s
	r.values = append(r.values, s.value)
	r.notes = append(r.notes, s.note)
	return all
}

// median is the middle one of the runs, or the mean of the two in the middle.
func (r *result) median() float64 {
	sorted := slices.Sorted(slices.Values(r.values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// middle is the note of a run whose figure is nearest to the median.
func (r *result) middle() string {
	best := 0
	for i, v := range r.values {
		if distance(v, r.median()) < distance(r.values[best], r.median()) {
			best = i
		}
	}
	return r.notes[best]
}

func distance(a, b float64) float64 { return max(a-b, b-a) }

// verdict says how the figure stands to its floor.
func (r *result) verdict() string {
	switch {
	case r.floor == 0:
		return ""
	case r.median() >= r.floor:
		return "reached"
	default:
		return "MISSED"
	}
}

// document is a line of -json.
type document struct {
	Name    string    `json:"name"`
	Value   float64   `json:"value"` // the median
	Unit    string    `json:"unit"`
	Floor   float64   `json:"floor,omitempty"`
	Reached *bool     `json:"reached,omitempty"` // absent: no floor
	Runs    []float64 `json:"runs"`
	Note    string    `json:"note,omitempty"`
}

func (r *result) document() document {
	d := document{
		Name: r.name, Value: r.median(), Unit: r.unit, Floor: r.floor, Runs: r.values,
		Note: r.middle(),
	}
	if r.floor > 0 {
		reached := r.median() >= r.floor
		d.Reached = &reached
	}
	return d
}

// figure writes a number with three significant digits or more, and commas from 10,000 on.
func figure(v float64) string {
	if v < 100 && v > -100 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	text := strconv.FormatFloat(v, 'f', 0, 64)
	if len(text) > 4 {
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
	}
	return text
}

// table sets the results below each other.
func table(all []result) string {
	rows := [][]string{{"", "reached", "floor", "", "", ""}}
	for i := range all {
		r := &all[i]
		floor, spread := "", ""
		if r.floor > 0 {
			floor = "≥ " + figure(r.floor)
		}
		if len(r.values) > 1 {
			least, greatest := slices.Min(r.values), slices.Max(r.values)
			spread = "(" + figure(least) + " to " + figure(greatest) + ")"
		}
		rows = append(rows, []string{
			r.name, figure(r.median()) + " " + r.unit, floor, r.verdict(), spread, r.middle(),
		})
	}
	return columns(rows)
}

// columns sets cells below each other; the second and the third are numbers and stand to the right.
func columns(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			blanks := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case widths[i] == 0: // nobody has anything here
			case i == 1 || i == 2:
				line.WriteString(blanks + cell + "  ")
			default:
				line.WriteString(cell + blanks + "  ")
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}
