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

// Comparison compares one metric of one flow of a cell between two directories.
type Comparison struct {
	Set  []plan.Setting `json:"set,omitempty"`
	Flow string         `json:"flow,omitempty"` // name of the flow; empty: the whole run
	// Kind is the kind of the flow, such as its congestion control.
	Kind   string        `json:"kind,omitempty"`
	Metric result.Metric `json:"metric"`
	Unit   result.Unit   `json:"unit,omitempty"`
	Paired bool          `json:"paired"`
	N      int           `json:"n"`
	Before *float64      `json:"before"`
	After  *float64      `json:"after"`
	// BeforeReach and AfterReach are the half-widths of the means' 95 % intervals. They are not set
	// for pairs.
	BeforeReach *float64 `json:"before_reach,omitempty"`
	AfterReach  *float64 `json:"after_reach,omitempty"`
	Change      *float64 `json:"difference"`
	Low         *float64 `json:"ci_lo"`
	High        *float64 `json:"ci_hi"`
	Share       *float64 `json:"share"`
	// LeftOut counts pairs without a result, because a run did not finish.
	LeftOut int  `json:"left_out,omitempty"`
	Late    bool `json:"late,omitempty"` // a run in real time was late

	alone bool // the flow is the only one in its runs
}

// flowText returns the name of the flow for tables. It returns the kind of a single flow, because
// the file may have named the flow after another congestion control.
func (c *Comparison) flowText() string {
	switch {
	case c.Flow == "":
		return "all"
	case c.alone && c.Kind != "":
		return c.Kind
	case strings.Contains(c.Kind, " / "):
		return c.Flow + " (" + c.Kind + ")"
	}
	return c.Flow
}

// Compare compares two directories cell by cell. For trials with the same seed it computes the mean
// of the differences, which is less uncertain than the difference of the means. For other trials it
// computes the difference of the means. It compares cells with the same settings. If there are
// none, it compares all cells in order, provided that both directories have equally many.
func Compare(a, b *Results) ([]Comparison, error) {
	cells, err := matchCells(a, b)
	if err != nil {
		return nil, err
	}
	var out []Comparison
	for _, pair := range cells {
		before, after := a.runsOf(pair[0]), b.runsOf(pair[1])
		if len(before) == 0 || len(after) == 0 {
			continue
		}
		if len(before[0].Flows) != len(after[0].Flows) {
			return nil,
				usage("cannot compare: cell %d of %s has %d flows, and cell %d of %s has %d",
					pair[0], a.Dir, len(before[0].Flows), pair[1], b.Dir, len(after[0].Flows))
		}
		out = append(out, compareRuns(before, after, a.Cells[pair[0]].Set)...)
	}
	return out, nil
}

// compareRuns compares the runs of two cells with the same number of flows: each flow, and the
// whole run.
func compareRuns(before, after []*result.Trial, set []plan.Setting) []Comparison {
	var out []Comparison
	var pairs [][2]int // indices of the runs with the same seed
	second := map[uint64]int{}
	for i, t := range after {
		second[t.Seed] = i
	}
	for i, t := range before {
		if j, ok := second[t.Seed]; ok {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	paired := before[0].Seed == after[0].Seed
	b := result.Groups(0, after)
	for i, a := range result.Groups(0, before) {
		for _, d := range result.Catalog() {
			c := Comparison{
				Set: set, Flow: a.Flow, Metric: d.Name, Unit: d.Unit, Paired: paired,
				alone: a.Flow != "" && len(b) == 2,
			}
			if c.Kind = a.Label; a.Label != b[i].Label {
				c.Kind += " / " + b[i].Label
			}
			x, y := a.Numbers[d.Name].Values, b[i].Numbers[d.Name].Values
			if paired {
				x, y = pairsOf(&a, &b[i], pairs, d.Name)
				c.LeftOut = min(len(before), len(after)) - len(x)
			}
			if len(x) > 0 && len(y) > 0 {
				c.compare(x, y)
				out = append(out, c)
			}
		}
	}
	return out
}

func matchCells(a, b *Results) ([][2]int, error) {
	var pairs [][2]int
	for i := range a.Cells {
		for j := range b.Cells {
			if slices.Equal(a.Cells[i].Set, b.Cells[j].Set) &&
				(a.Real && isReal(i)) == (b.Real && isReal(j)) {
				pairs = append(pairs, [2]int{i, j})
				break
			}
		}
	}
	switch {
	case len(pairs) > 0:
		return pairs, nil
	case len(a.Cells) != len(b.Cells):
		return nil, usage("%s and %s have no cell in common", a.Dir, b.Dir)
	}
	for i := range a.Cells {
		pairs = append(pairs, [2]int{i, i})
	}
	return pairs, nil
}

func (r *Results) runsOf(cell int) []*result.Trial {
	find := func(cell int) int {
		at, _ := slices.BinarySearchFunc(r.Runs, cell, func(t *result.Trial, cell int) int {
			return t.Cell - cell
		})
		return at
	}
	return r.Runs[find(cell):find(cell+1)]
}

// compare sets the numbers of a comparison.
func (c *Comparison) compare(x, y []float64) {
	difference := result.Unpaired(x, y)
	if c.Paired {
		difference = result.Paired(x, y)
	}
	c.N = difference.N
	first, second := result.Describe(x, 0), result.Describe(y, 0)
	c.Before, c.After = number(first.Mean), number(second.Mean)
	if !c.Paired {
		c.BeforeReach = number(first.HalfWidth())
		c.AfterReach = number(second.HalfWidth())
	}
	c.Change, c.Share = number(difference.Mean), number(difference.Share)
	c.Low, c.High = number(difference.Low), number(difference.High)
}

// pairsOf returns the values of a metric in those pairs of runs that both have it.
func pairsOf(a, b *result.Group, pairs [][2]int, m result.Metric) (x, y []float64) {
	for _, pair := range pairs {
		v, ok := a.Trials[pair[0]][m]
		w, too := b.Trials[pair[1]][m]
		if ok && too {
			x, y = append(x, v), append(y, w)
		}
	}
	return x, y
}

// PrintComparison writes a table of the differences between two directories. Without metrics, it
// has the default metrics.
func PrintComparison(w io.Writer, a, b *Results, list []Comparison, s TableOptions) error {
	list = ofInterest(list, s.Metrics)
	t := comparisonTable(list, a.Dir, b.Dir)
	if s.LaTeX {
		_, err := io.WriteString(w, t.LaTeX(a.Dir+" and "+b.Dir, comparisonLegend(a, b, list)))
		return err
	}
	var text strings.Builder
	text.WriteString(t.String())
	text.WriteString(comparisonLegend(a, b, list))
	_, err := io.WriteString(w, text.String())
	return err
}

// ofInterest selects the given metrics (nil: the defaults). It omits Jain's index if both are 1.
func ofInterest(list []Comparison, metrics []result.Metric) []Comparison {
	if metrics == nil {
		metrics = defaultMetrics
	}
	return slices.DeleteFunc(slices.Clone(list), func(c Comparison) bool {
		return !slices.Contains(metrics, c.Metric) ||
			c.Flow == "" && c.Metric == result.Jain && *c.Before == 1 && *c.After == 1
	})
}

// comparisonTable returns a table with a line for each metric of each flow of each cell. The values
// of the two sides are in columns with the given names.
func comparisonTable(list []Comparison, before, after string) *table.Table {
	t := table.New("<cell", "<flow", "<metric", before, after, "difference", "<", "", "<")
	lastCell, lastFlow, late := "\x00", "\x00", false
	for i := range list {
		c := &list[i]
		set, name := settingsText(c.Set, "=", " "), c.flowText()
		most := max(math.Abs(*c.Before), math.Abs(*c.After))
		scale := result.ScaleOf(c.Unit, cmp.Or(most, 1))
		decimals := result.Decimals(scale.Of(most), 4)
		show := func(v float64) string { return fmt.Sprintf("%.*f", decimals, scale.Of(v)) }
		reach := func(column int, v *float64) {
			text := ""
			if v != nil {
				text = " ± " + show(*v)
			}
			t.Columns[column].Suffixes = append(t.Columns[column].Suffixes, text)
		}
		reach(3, c.BeforeReach)
		reach(4, c.AfterReach)
		var half *float64
		if c.Low != nil {
			half = number((*c.High - *c.Low) / 2)
		}
		reach(5, half)
		share, doubt := c.verdict()
		t.Columns[7].Suffixes = append(t.Columns[7].Suffixes, doubt)
		t.Row(unless(set == lastCell, set), unless(set == lastCell && name == lastFlow, name),
			string(c.Metric), show(*c.Before), show(*c.After),
			fmt.Sprintf("%+.*f", decimals, scale.Of(*c.Change)), scale.Name, share,
			unless(!c.Late, "late"))
		lastCell, lastFlow, late = set, name, late || c.Late
	}
	if !late {
		t.Columns = t.Columns[:len(t.Columns)-1]
	}
	if lastCell == "" {
		t.Columns = t.Columns[1:]
	}
	return t
}

// verdict returns the relative change, and a question mark if the interval contains 0.
func (c *Comparison) verdict() (share, doubt string) {
	if c.Share != nil {
		share = fmt.Sprintf("%+.1f %%", 100**c.Share)
	}
	if c.Low != nil && *c.Low <= 0 && 0 <= *c.High && *c.Change != 0 {
		doubt = " ?"
	}
	return share, doubt
}

// unfinished returns a note about the runs that did not finish, if there are any.
func (r *Results) unfinished() string {
	n := 0
	for _, t := range r.Runs {
		if !t.Finished {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d runs of %s did not finish: their results up to the end are "+
		"compared\n",
		n, len(r.Runs), r.Dir)
}

func comparisonLegend(a, b *Results, list []Comparison) string {
	if len(list) == 0 {
		return "nothing to compare\n"
	}
	text := "\npairs of runs with the same random numbers: mean differences"
	if !list[0].Paired {
		text = "\ndifferent seeds, so runs do not pair: differences of means (Welch)"
	}
	text += " ± half of the 95 % confidence interval\n?: the interval contains 0\n" +
		a.unfinished() + b.unfinished()
	if slices.ContainsFunc(list, func(c Comparison) bool { return c.LeftOut > 0 }) {
		text += "pairs with an incomplete run are left out of some metrics\n"
	}
	return text
}

func unless(is bool, text string) string {
	if is {
		return ""
	}
	return text
}
