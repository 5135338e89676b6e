package figure

import (
	"io"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
)

// Figure is a transfer in pictures: congestion window, round-trip time and sequence over time, the
// whole transfer on the left and a few round trips of its middle on the right.
type Figure struct {
	Title   string
	Note    string   // a second, smaller line; empty: none
	Samples []Sample // of one connection, in order of time; some are required
}

// Write draws the figure in one of Formats.
func (f Figure) Write(w io.Writer, format string, s Style) error {
	c, err := f.chart()
	if err != nil {
		return err
	}
	return c.Write(w, format, s)
}

func (f Figure) chart() (*chart.Figure, error) {
	if len(f.Samples) == 0 {
		return nil, ErrNoSamples
	}
	whole, detail := f.Samples, middle(f.Samples)
	left, right := newTimeline(whole, whole[0].Seconds), newTimeline(detail, whole[0].Seconds)
	out := &chart.Figure{Title: f.Title, Note: f.Note, Alt: f.Title + ". " + f.Note}
	for i, panel := range []struct {
		title string
		draw  func([]Sample, timeline) chart.Panel
	}{
		{"window", transferWindow},
		{"round-trip time", transferRTT},
		{"sequence", transferSequence},
	} {
		l, r := panel.draw(whole, left), panel.draw(detail, right)
		l.Title, l.Share = panel.title, 1.5
		l.X.Bare, r.X.Bare = i < 2, i < 2
		if i == 0 {
			r.Title = "its middle, " + right.length()
		}
		for j := range r.Layers { // the left panel has named them
			r.Layers[j].Name = ""
		}
		out.Rows = append(out.Rows, chart.Row{Height: 100, Panels: []chart.Panel{l, r}})
	}
	return out, nil
}
