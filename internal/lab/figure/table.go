package figure

import (
	"html/template"
	"slices"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// resultTable has the results, with a row for each flow of each cell.
type resultTable struct {
	Settings []string // swept keys
	Flows    bool     // the table has a column for flows
	Cut      bool     // some runs did not finish
	Heads    []head
	Rows     []row
	Interval bool // some numbers have a confidence interval
	Single   bool // each cell was run once
	Summary  bool // some rows summarize several flows
}

// setting is a cell's value of a swept key. Color is its color in figures; empty: it has none.
type setting struct {
	Text  string
	Color template.CSS
}

type head struct{ Name, Unit, Text string }

type row struct {
	First    bool // this is the first row of its cell
	Span     int  // number of rows of the cell, in its first row
	Settings []setting
	Clock    string
	Flow     string
	Color    template.CSS // color of the flow
	Finished string
	Short    bool // some runs did not finish
	Note     string
	Cells    []cellText
}

// cellText is a formatted number.
type cellText struct {
	Value, Spread string
	Median        bool
}

// fullTable has all metrics of a cell's flow.
type fullTable struct {
	Title string
	Rows  []fullRow
}

type fullRow struct{ Name, Text, N, Mean, Interval, SD, Median, IQR, Range string }

func (r *row) title() string {
	name := ""
	for _, s := range r.Settings {
		name = joined(name, s.Text)
	}
	if r.Clock != "virtual" {
		name = joined(name, r.Clock)
	}
	return joined(name, r.Flow)
}

// unfinished describes the runs that did not finish. A note names the flow, or the whole run if no
// flow gives a reason.
func (t *resultTable) unfinished() []string {
	var notes []string
	reported := false
	for i := range t.Rows {
		row := &t.Rows[i]
		reported = reported && !row.First
		if !row.Short || row.Note == "" || reported && row.Flow == "all" || len(notes) == maxNotes {
			continue
		}
		reported = true
		notes = append(notes, "Not finished: "+row.title()+": "+row.Note)
	}
	return notes
}

// maxNotes limits the notes about unfinished runs.
const maxNotes = 12

// maxRows and maxDetails limit the rows and the detailed tables of a page. summary.csv has all.
const (
	maxRows    = 400
	maxDetails = 60
)

// table returns the table. If a cell has only one flow, the row of the flow also has the metrics of
// the run.
func (c *compared) table() resultTable {
	t := resultTable{Settings: c.keys}
	var rows []result.Group
	for i := range c.cells {
		rows = append(rows, result.Rows(i, c.cells[i].Trials, false)...)
	}
	t.Single = !slices.ContainsFunc(c.cells, func(c Cell) bool { return len(c.Trials) > 1 })
	t.Summary = slices.ContainsFunc(rows, func(g result.Group) bool { return g.Summary })
	metrics := c.tableMetrics(rows)
	units := make([]result.Scale, len(metrics))
	for i, m := range metrics {
		d := m.Definition()
		most := 0.0
		for _, g := range rows {
			if v, ok := g.Numbers[m]; ok && !infinite(v.Median) {
				most = max(most, v.Median)
			}
		}
		units[i] = result.ScaleOf(d.Unit, most)
		t.Heads = append(t.Heads, head{d.Headed(), units[i].Name, d.Text})
	}
	last := -1
	for _, g := range rows[:min(len(rows), maxRows)] {
		r := c.row(g, &t)
		r.First = g.Cell != last
		last = g.Cell
		for i, m := range metrics {
			n := numberText(g.Numbers[m], units[i])
			if whole := g.Numbers[m].Values; counted(m) && len(whole) == 1 {
				n.Value = strconv.FormatFloat(whole[0], 'f', -1, 64)
			}
			t.Interval = t.Interval || n.Spread != ""
			r.Cells = append(r.Cells, n)
		}
		t.Rows = append(t.Rows, r)
	}
	for i := range t.Rows {
		for n := i; t.Rows[i].First && n < len(t.Rows) && (n == i || !t.Rows[n].First); n++ {
			t.Rows[i].Span++
		}
	}
	return t
}

func (c *compared) row(g result.Group, t *resultTable) row {
	cell := &c.cells[g.Cell]
	r := row{
		Note: g.Note, Clock: cell.Clock, Color: c.colorOf(g),
		Short:    g.Finished < g.N,
		Finished: strconv.Itoa(g.Finished) + "/" + strconv.Itoa(g.N), Flow: "all",
	}
	named := false
	for _, k := range c.keys {
		v := setting{Text: cell.value(k)}
		if len(cell.Trials[0].Flows) == 1 && v.Text == g.Label {
			v.Color, named = r.Color, true
		}
		v.Text = result.Shown(v.Text)
		r.Settings = append(r.Settings, v)
	}
	t.Flows, t.Cut = t.Flows || !named, t.Cut || r.Short
	if g.Flow != "" {
		r.Flow = g.Flow
		if g.Label != "" && g.Label != g.Flow {
			r.Flow += " (" + g.Label + ")"
		}
	}
	return r
}

// counted reports whether the metric of a single run is a whole number.
func counted(m result.Metric) bool {
	return m.Definition().Unit == "packets" || m == result.Timeouts || m == result.Recoveries
}

func (c *compared) colorOf(g result.Group) template.CSS {
	var labels []string
	at := -1
	for i, f := range c.cells[g.Cell].Trials[0].Flows {
		labels = append(labels, f.Label)
		if f.Name == g.Flow {
			at = i
		}
	}
	if at < 0 || g.Label == "" {
		return ""
	}
	return template.CSS(shades(labels)[at].CSS())
}

// defaultTableMetrics lists the metrics of tables, the most important first.
var defaultTableMetrics = []result.Metric{
	result.Completion, result.Goodput, result.Utilization, result.RTTMean, result.Jain,
	result.Sent, result.Retransmits, result.Timeouts, result.QueueP95,
}

// maxHeads limits the metrics of the table.
const maxHeads = 7

func (c *compared) tableMetrics(rows []result.Group) []result.Metric {
	if len(c.asked) > 0 {
		return c.asked
	}
	var list []result.Metric
	most := maxHeads
	if slices.ContainsFunc(c.cells, func(c Cell) bool { return c.Real }) {
		most-- // the clock needs one column
	}
	for _, m := range defaultTableMetrics {
		reported := false
		for _, g := range rows {
			if v, ok := g.Numbers[m]; ok && (v.Cut > 0 || v.Maximum != 0 || v.Minimum != 0) {
				reported = true
			}
		}
		if reported && len(list) < most {
			list = append(list, m)
		}
	}
	return list
}

// numberText formats a number with its interval or quartiles.
func numberText(t result.Number, u result.Scale) cellText {
	_, mid, _, ok := middleOf(t)
	switch {
	case t.N == 0:
		return cellText{Value: ""}
	case !ok:
		return cellText{Value: "not reached"}
	case t.Cut > 0:
		n := cellText{Value: digits(u.Of(mid)), Median: true}
		if iqr := u.Of(t.Q3 - t.Q1); !infinite(iqr) {
			n.Spread = digits(iqr)
		}
		return n
	}
	n := cellText{Value: digits(u.Of(mid))}
	if half := u.Of(t.HalfWidth()); half == half {
		n.Value, n.Spread = formatInterval(u.Of(mid), half)
	}
	return n
}

func (c *compared) fullTables() []fullTable {
	var list []fullTable
	for _, g := range c.groups {
		if len(list) == maxDetails {
			break
		}
		t := fullTable{Title: joined(c.cells[g.Cell].name(c.keys), g.Flow)}
		if g.Flow == "" {
			t.Title = joined(c.cells[g.Cell].name(c.keys), "the whole run")
		}
		for _, d := range result.Catalog() {
			v, ok := g.Numbers[d.Name]
			if !ok {
				continue
			}
			t.Rows = append(t.Rows, fullRowOf(d, v))
		}
		list = append(list, t)
	}
	return list
}

func fullRowOf(d result.Definition, v result.Number) fullRow {
	u := result.ScaleOf(d.Unit, v.Median)
	say := func(x float64) string {
		if infinite(x) {
			return ""
		}
		return digits(u.Of(x))
	}
	r := fullRow{
		Name: joined(d.Titled(), u.Name), Text: d.Text, N: strconv.Itoa(len(v.Values)),
		Mean: say(v.Mean), SD: say(v.SD), Median: say(v.Median), IQR: say(v.Q3 - v.Q1),
		Range: say(v.Minimum) + " … " + say(v.Maximum),
	}
	if !infinite(v.Low) && !infinite(v.High) {
		r.Interval = say(v.Low) + " … " + say(v.High)
	}
	return r
}
