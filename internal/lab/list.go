package lab

import (
	"fmt"
	"io"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/table"
)

// List writes a numbered line for each of a study's cells, and the total number of runs.
func (s *Study) List(w io.Writer) error {
	r := &Results{Manifest: s.manifest()}
	heads := []string{"cell"}
	for _, s := range r.Cells[0].Set {
		heads = append(heads, "<"+s.Name)
	}
	t, runs := table.New(append(heads, "trials", "<flows")...), 0
	for i, c := range r.Cells {
		row := []string{fmt.Sprint(i)}
		for _, s := range c.Set {
			row = append(row, result.Shown(s.Value))
		}
		t.Row(append(row, fmt.Sprint(c.Trials), strings.Join(c.Flows, ", "))...)
		runs += c.Trials
	}
	_, err := fmt.Fprintf(w, "%s\n%d runs in cells 0 to %d\n", t, runs, len(r.Cells)-1)
	return err
}

// Metrics writes the catalog of metrics.
func Metrics(w io.Writer) error {
	t := table.New("<metric", "<unit", "<what it is")
	for _, d := range result.Catalog() {
		t.Row(string(d.Name), string(d.Unit), d.Text)
	}
	_, err := io.WriteString(w, t.String())
	return err
}
