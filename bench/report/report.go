package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/bench/flame"
)

// Fact is a measurement that is not compared with another stack.
type Fact struct {
	Name  string    `json:"fact"`
	Value float64   `json:"value"`
	Unit  string    `json:"unit"`
	Runs  []float64 `json:"runs,omitempty"`
	Note  string    `json:"note,omitempty"`
}

// Check is one requirement of one of the seven points.
type Check struct {
	Point  int
	What   string
	Got    float64
	Goal   float64
	AtMost bool // Got must not be greater than Goal; otherwise not less
	Known  bool // the value was measured
	Note   string
}

// Verdict returns reached, MISSED or not measured.
func (c *Check) Verdict() string {
	switch {
	case !c.Known:
		return "not measured"
	case c.AtMost && c.Got > c.Goal, !c.AtMost && c.Got < c.Goal:
		return "MISSED"
	default:
		return "reached"
	}
}

// Demand formats the goal, such as "≥ 2".
func (c *Check) Demand() string {
	if !c.Known && c.Goal == 0 {
		return "" // the row was not measured
	}
	if c.AtMost {
		return "≤ " + Figure(c.Goal)
	}
	return "≥ " + Figure(c.Goal)
}

// Profiled is the CPU profile of one process.
type Profiled struct {
	Name, File string // name of the profile, and file of the flame graph
	Packages   []flame.Share
	Functions  []flame.Share
}

// Report holds all results.
type Report struct {
	Commit, Machine, Kernel, Go, CPU string
	CPUs                             int
	Load                             string // load of the machine before and after the run
	When                             string
	Span                             string // duration of a run
	Rounds                           int
	Rows                             []Row
	Facts                            []Fact
	Skipped                          []Skipped
	Checks                           []Check
	Profiles                         []Profiled
}

// Figure formats a number with three significant digits below 100, else as a whole number, and with
// commas from 10,000 on.
func Figure(v float64) string {
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

// Table formats all comparisons, facts and points for a terminal.
func (r *Report) Table() string {
	rows := [][]string{{"case", "ours", "theirs", "ratio", "goal", "", "peer", ""}}
	for i := range r.Rows {
		w := &r.Rows[i]
		rows = append(rows, []string{
			w.Case, Figure(w.Ours), Figure(w.Their) + " " + w.Unit, Figure(w.Ratio),
			w.Demand(), w.Verdict(), w.Peer, w.Aside(),
		})
	}
	for _, s := range r.Skipped {
		rows = append(rows, []string{s.Case, "", "", "", "", "skipped", s.Peer, s.Skip})
	}
	text := columns(rows)
	rows = [][]string{{"figure", "value", "unit"}}
	for _, f := range r.Facts {
		rows = append(rows, []string{f.Name, Figure(f.Value), f.Unit + "  " + f.Note})
	}
	text += "\n" + columns(rows)
	rows = [][]string{{"goal", "measured", "required", "", ""}}
	for i := range r.Checks {
		c := &r.Checks[i]
		rows = append(rows, []string{
			strconv.Itoa(c.Point) + "  " + c.What, c.got(), c.Demand(), c.Verdict(), c.Note,
		})
	}
	return text + "\n" + columns(rows)
}

func (c *Check) got() string {
	if !c.Known {
		return "?"
	}
	return Figure(c.Got)
}

// Demand formats the goal of a ratio; empty: the row has none.
func (r *Row) Demand() string {
	if r.Goal == 0 {
		return ""
	}
	return (&Check{Goal: r.Goal, AtMost: r.LessIsBetter, Known: true}).Demand()
}

// Verdict compares the ratio with its goal.
func (r *Row) Verdict() string {
	if r.Goal == 0 {
		return ""
	}
	return (&Check{Got: r.Ratio, Goal: r.Goal, AtMost: r.LessIsBetter, Known: true}).Verdict()
}

// Aside returns the row's note, bound and counters; without a bound, only the counters above 0.
func (r *Row) Aside() string {
	var list []string
	if r.Note != "" {
		list = append(list, r.Note)
	}
	if r.Bound > 0 {
		list = append(list, "bound "+Figure(r.Bound)+" at "+Figure(r.RTTms)+" ms")
	}
	for _, c := range []struct {
		count *float64
		what  string
	}{
		{r.RTOs, "RTOs"},
		{r.TailProbes, "TLPs"},
		{r.Retransmits, "retransmitted"},
		{r.LostRetransmits, "of these lost"},
		{r.Spurious, "spurious"},
		{r.Drops, "dropped by us"},
	} {
		if c.count != nil && (*c.count > 0 || r.Bound > 0) {
			list = append(list, Figure(*c.count)+" "+c.what)
		}
	}
	return strings.Join(list, ", ")
}

// columns aligns cells in columns.
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
			if i > 0 && number(cell) {
				cell = blanks + cell
			} else {
				cell += blanks
			}
			line.WriteString(cell + "  ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// number reports whether a cell begins like a number.
func number(cell string) bool {
	return len(cell) > 0 && cell[0] >= '0' && cell[0] <= '9' && len(cell) < 20
}

// Row returns the comparison of a case with a peer.
func (r *Report) Row(name, peer string) (*Row, bool) {
	i := slices.IndexFunc(r.Rows, func(w Row) bool { return w.Case == name && w.Peer == peer })
	if i < 0 {
		return nil, false
	}
	return &r.Rows[i], true
}

// Fact returns a figure by its name.
func (r *Report) Fact(name string) (*Fact, bool) {
	i := slices.IndexFunc(r.Facts, func(f Fact) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return &r.Facts[i], true
}

// Most returns the greatest shares, at most count of them.
func Most(list []flame.Share, count int) []flame.Share {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b flame.Share) int {
		return cmp.Compare(b.Share, a.Share)
	})
	return sorted[:min(count, len(sorted))]
}
