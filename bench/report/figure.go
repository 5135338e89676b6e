package report

import (
	"io"
	"math"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
)

// rowHeight is the height of a comparison in the figure, in points.
const rowHeight = 16

// WriteFigure draws the ratios of all comparisons on one axis, with their goals. It inverts ratios
// for which less is better, so that further right is always better.
func (r *Report) WriteFigure(w io.Writer) error {
	var names []string
	var reached, missed, free, goals []chart.Point
	least, most := 0.5, 2.0
	for i := range r.Rows {
		row := &r.Rows[i]
		ratio, goal := row.Ratio, row.Goal
		name := strings.Replace(row.Peer, "gvisor-tuned", "gvisor", 1)
		if row.Case == row.Measured.Case { // otherwise the case is named after the peer
			name = row.Case + ": " + name
		}
		if row.LessIsBetter {
			ratio, goal = 1/ratio, 1/goal
			name = "1/" + name
		}
		at := chart.Point{X: ratio, Y: float64(len(names))}
		names = append(names, name)
		least, most = min(least, ratio), max(most, ratio)
		switch row.Verdict() {
		case "":
			free = append(free, at)
			continue
		case "reached":
			reached = append(reached, at)
		default:
			missed = append(missed, at)
		}
		goals = append(goals, chart.Point{X: goal, Y: at.Y})
		least, most = min(least, goal), max(most, goal)
	}
	panel := chart.Panel{
		Title: "further to the right is better",
		X: chart.Axis{
			Label: "ratio, ours to theirs; 1/: theirs to ours",
			// The axis begins at a power of ten, so that there is also a label left of 1.
			Min: math.Pow(10, math.Floor(math.Log10(least))), Max: most * 1.3, Log: true,
		},
		Y: chart.Axis{Min: -0.7, Max: float64(len(names)) - 0.3, Reversed: true, Names: names},
		Layers: []chart.Layer{
			{Kind: chart.Line, Paint: chart.Gray, Dash: true, Points: []chart.Point{
				{X: 1, Y: -0.7}, {X: 1, Y: float64(len(names)) - 0.3},
			}},
			{Name: "reached", Kind: chart.Dots, Paint: chart.Blue, Width: 6, Points: reached},
			{Name: "missed", Kind: chart.Dots, Paint: chart.Vermillion, Width: 6, Points: missed},
			{Name: "no goal", Kind: chart.Dots, Paint: chart.Gray, Width: 6, Points: free},
			{Name: "goal", Kind: chart.Crosses, Paint: chart.Ink, Width: 1.2, Points: goals},
		},
	}
	f := chart.Figure{
		Title: "tidepool and its peers", Note: r.Machine,
		Rows: []chart.Row{{
			Height: math.Max(120, float64(len(names))*rowHeight), Panels: []chart.Panel{panel},
		}},
		Alt: "The ratio of tidepool's result to a peer's, for each case.",
	}
	return f.Write(w, "svg", chart.Style{})
}
