package lab

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/table"
)

// maxColumns and maxRows limit the size of a table.
const (
	maxColumns = 100
	maxRows    = 100
)

// defaultMetrics lists the metrics of tables, the most important first; the others are in
// summary.csv. If a run has only one flow, the flow's row also has the metrics of the run.
var defaultMetrics = []result.Metric{
	result.Completion, result.ClientSent, result.SmallMean, result.NotebookThroughput,
	result.NotebookDuplicates, result.Goodput, result.RTTMean, result.Utilization,
	result.Retransmits, result.Jain, result.Sent, result.QueueP95, result.Drops, result.Timeouts,
}

// TableOptions select the content of a table.
type TableOptions struct {
	// Metrics are the columns; nil: the metrics that the experiment's file chooses, or as many of
	// the default metrics as fit.
	Metrics []result.Metric
	// All adds a row for each flow even if there are many, instead of summarizing them.
	All bool
	// LaTeX prints a tabular with comments.
	LaTeX bool
}

// Print writes one table with a row for each flow of each cell. It shows means with their
// intervals, or medians if some runs did not finish.
func (r *Results) Print(w io.Writer, s TableOptions) error {
	var b strings.Builder
	all, metrics := r.rows(s.All), s.Metrics
	rows := all
	if !s.All && !s.LaTeX {
		rows = all[:min(len(all), maxRows)]
	}
	b.WriteString(r.Name)
	if r.About != "" {
		b.WriteString(": " + r.About)
	}
	b.WriteString("\n\n")
	t := r.settingsTable(rows)
	if metrics == nil {
		metrics = r.Metrics
	}
	if metrics != nil {
		for _, m := range metrics {
			c, _ := metricColumn(rows, m)
			t.Add(c)
		}
	} else {
		r.addDefaults(t, rows)
	}
	if s.LaTeX {
		_, err := io.WriteString(w, t.LaTeX(b.String(), r.legend(all)))
		return err
	}
	b.WriteString(t.String())
	if n := len(all) - len(rows); n > 0 {
		fmt.Fprintf(&b, "and %d more rows: %s has all\n", n, summaryFile)
	}
	b.WriteString(r.legend(all))
	r.printReal(&b, s.Metrics)
	_, err := io.WriteString(w, b.String())
	return err
}

// settingsTable starts the table with the swept settings and the flows' names.
func (r *Results) settingsTable(rows []result.Group) *table.Table {
	t := &table.Table{}
	add := func(head [2]string, left bool, text func(*result.Group) string) {
		c := table.Column{Head: head, Left: left}
		for i := range rows {
			c.Cells = append(c.Cells, text(&rows[i]))
		}
		t.Add(c)
	}
	once := func(head string, text func(cell int) string) { // only in a cell's first row
		last := -1
		add([2]string{"", head}, true, func(g *result.Group) string {
			if g.Cell == last {
				return ""
			}
			last = g.Cell
			return text(g.Cell)
		})
	}
	if len(r.Cells) > 0 {
		for i, s := range r.Cells[0].Set {
			once(s.Name, func(cell int) string {
				return result.Shown(r.Cells[cell].Set[i].Value)
			})
		}
	}
	if r.Real {
		once("time", r.clockName)
	}
	has := func(what func(g result.Group) bool) bool { return slices.ContainsFunc(rows, what) }
	if len(r.Cells) == 1 || has(func(g result.Group) bool { return g.Flow == "" }) {
		add([2]string{"", "flow"}, true, func(g *result.Group) string {
			return cmp.Or(g.Flow, "all")
		})
	}
	if has(func(g result.Group) bool { return g.Label != g.Flow && g.Label != "" }) &&
		(!r.sweeps("cc") || mixed(rows)) {
		add([2]string{"", "kind"}, true, func(g *result.Group) string {
			return unless(g.Label == g.Flow, g.Label)
		})
	}
	if has(func(g result.Group) bool { return g.Finished < g.N }) {
		add([2]string{"finished", "runs"}, false, func(g *result.Group) string {
			return fmt.Sprintf("%d/%d", g.Finished, g.N)
		})
	}
	return t
}

// mixed reports whether a cell has flows with different labels.
func mixed(rows []result.Group) bool {
	for i := 1; i < len(rows); i++ {
		a, b := &rows[i-1], &rows[i]
		if a.Cell == b.Cell && a.Label != b.Label && a.Flow != "" && b.Flow != "" {
			return true
		}
	}
	return false
}

// sweeps reports whether a swept key ends with this part.
func (r *Results) sweeps(part string) bool {
	return len(r.Cells) > 0 && slices.ContainsFunc(r.Cells[0].Set, func(s plan.Setting) bool {
		return s.Key[strings.LastIndex(s.Key, ".")+1:] == part
	})
}

// addDefaults adds as many default metrics with values as fit.
func (r *Results) addDefaults(t *table.Table, rows []result.Group) {
	for _, m := range defaultMetrics {
		c, empty := metricColumn(rows, m)
		if !empty && t.Width()+table.Gap+c.Width() <= maxColumns {
			t.Add(c)
		}
	}
}

func (r *Results) legend(rows []result.Group) string {
	var b strings.Builder
	fewest, most, cut := math.MaxInt, 0, false
	for _, row := range rows {
		fewest, most = min(fewest, row.N), max(most, row.N)
		cut = cut || row.Finished < row.N
	}
	switch {
	case most == 0:
		return "nothing has been run\n"
	case most == 1:
		fmt.Fprintf(&b, "\none trial, seed %d", r.Seed)
	default:
		trials := fmt.Sprint(most)
		if fewest < most {
			trials = fmt.Sprintf("%d to %d", fewest, most)
		}
		fmt.Fprintf(&b, "\nmeans of %s trials ± half of the 95 %% confidence interval, seed %d",
			trials, r.Seed)
	}
	if cut && most > 1 {
		b.WriteString("\nwhere runs were cut off: ~ median (between the quartiles)")
	}
	if text := r.warmup(); text != "" {
		b.WriteString("\nmeans exclude " + strings.TrimSuffix(text, ",") + ", counts include it")
	}
	b.WriteString("\n")
	if slices.ContainsFunc(rows, func(g result.Group) bool { return g.Summary }) {
		b.WriteString("many flows: minimum, median and maximum of each metric; " +
			"--all shows each\n")
	}
	for _, text := range r.unsteady(rows) {
		b.WriteString(strings.Join(table.Wrap(text, maxColumns), "\n    ") + "\n")
	}
	listed := 0
	for i := range rows {
		row := &rows[i]
		if row.Finished == row.N || row.Flow == "" {
			continue
		}
		if listed++; listed > maxExplained {
			b.WriteString("and more; " + trialsFile + " has the reason of each\n")
			break
		}
		text := fmt.Sprintf("%d of %d did not finish: %s, %s", row.N-row.Finished, row.N,
			strings.TrimSpace(r.timedText(row.Cell)+" "+row.Flow), unfinishedNote(row))
		b.WriteString(strings.Join(table.Wrap(text, maxColumns), "\n    ") + "\n")
	}
	return b.String()
}

// maxExplained limits the number of notes about unfinished runs, and of notes about trends.
const maxExplained = 5

// settingsText formats the names and values of settings.
func settingsText(set []plan.Setting, equals, separator string) string {
	parts := make([]string, len(set))
	for i, s := range set {
		parts[i] = s.Name + equals + result.Shown(s.Value)
	}
	return strings.Join(parts, separator)
}

// metricColumn returns a metric's column. Its unit suits the numbers. All numbers have the same
// number of decimals, unless some are many times larger than others. empty means that no run has a
// value or was cut off before it had one.
func metricColumn(rows []result.Group, m result.Metric) (c table.Column, empty bool) {
	least, most := math.Inf(1), 0.0
	empty = true
	for i := range rows {
		n, ok := rows[i].Numbers[m]
		if !ok {
			continue
		}
		for _, v := range []float64{n.Mean, n.Median, n.Q1} {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				most = max(most, math.Abs(v))
				empty = false
			}
		}
		if v := math.Abs(n.Median); v > 0 { // it is infinite if half of the runs have no value
			least = min(least, v)
		}
		empty = empty && n.Cut == 0
	}
	d := m.Definition()
	scale := result.ScaleOf(d.Unit, cmp.Or(most, 1))
	f := numbers{scale: scale}
	if !allWhole(rows, m) {
		f.decimals, f.each = min(4, result.Decimals(scale.Of(most), 4)), most > wideSpan*least
	}
	c.Head = [2]string{d.Headed(), scale.Name}
	for i := range rows {
		n, ok := rows[i].Numbers[m]
		text, reach := "", ""
		if ok {
			text, reach = f.text(&n, rows[i].Finished < rows[i].N)
		}
		c.Cells = append(c.Cells, text)
		c.Suffixes = append(c.Suffixes, reach)
	}
	if f.each {
		c.AlignPoints()
	}
	return c, empty
}

// wideSpan is the ratio of a column's largest and smallest number above which each number gets its
// own decimals.
const wideSpan = 10

// allWhole reports whether all values of a packet counter are integers without spread.
func allWhole(rows []result.Group, m result.Metric) bool {
	if u := m.Definition().Unit; u != "packets" && u != "" {
		return false
	}
	for i := range rows {
		n, ok := rows[i].Numbers[m]
		if ok && (n.Mean != math.Trunc(n.Mean) || n.SD > 0) {
			return false
		}
	}
	return true
}

// numbers is the format of a column's numbers.
type numbers struct {
	scale    result.Scale
	decimals int
	// each means that each number gets enough decimals for four digits, or for two digits of its
	// interval.
	each bool
}

func (f numbers) own(mid, half float64) numbers {
	if !f.each || math.IsNaN(mid) || math.IsInf(mid, 0) {
		return f
	}
	f.decimals = min(6, result.Decimals(f.scale.Of(mid), 4))
	if half > 0 {
		f.decimals = min(f.decimals, result.Decimals(f.scale.Of(half), 2))
	}
	return f
}

// text formats a number with the half-width of its interval.
func (f numbers) text(n *result.Number, cut bool) (text, reach string) {
	if mid := n.Mean; !cut {
		f = f.own(mid, n.HalfWidth())
	} else {
		f = f.own(n.Median, n.IQR())
	}
	number := func(v float64) string { return fmt.Sprintf("%.*f", f.decimals, f.scale.Of(v)) }
	switch {
	case cut && n.N == 1 && math.IsInf(n.Median, 1):
		return "never", ""
	case cut && n.N == 1:
		return number(n.Median), "" // a single run has no quartiles
	case cut && math.IsInf(n.Median, 1):
		return "~ never", ""
	case cut && math.IsNaN(n.IQR()):
		return "~ " + number(n.Median), " (" + number(n.Q1) + " to never)"
	case cut:
		return "~ " + number(n.Median), " (" + number(n.Q1) + " to " + number(n.Q3) + ")"
	case math.IsNaN(n.SD):
		return number(n.Mean), ""
	}
	return number(n.Mean), " ± " + number(n.HalfWidth())
}
