package figure

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/table"
)

// Report is a self-contained page about an experiment: it needs no network, no other files and no
// scripts.
type Report struct {
	Name, About string
	Version     string // version of the program
	Seed        uint64
	Hash        string // digest of the events of all runs
	// Command runs the experiment again in any folder, and Here does so in the page's own folder.
	// Either may be empty.
	Command, Here string
	// Warmup describes the time at the start that averages exclude; may be empty.
	Warmup   string
	Document string   // the resolved experiment
	Notes    []string // warnings about the results
	Reload   bool     // the browser reloads the page, because the page will change
	Cells    []Cell
	// Metrics are the columns of the table; nil: the most important ones.
	Metrics  []result.Metric
	Verdicts []Verdict
	Plots    []Plot    // figures of all cells
	Sections []Section // figures of single runs
	// Timings describe the lateness of runs in real time. Late means that some runs were too late.
	Timings []string
	Late    bool
	// Comparison compares the runs with those in real time or in another simulator; nil: no others.
	Comparison *Comparison
}

// Comparison is a table with a title.
type Comparison struct {
	Title string
	*table.Table
}

// maxDrawn limits the size of a page's figures of single runs, in bytes. The figures of further
// runs are only in files, and the page says so.
const maxDrawn = 3 << 20

// Section has the figures of one run.
type Section struct {
	Title string
	Notes []string
	Plots []Plot
}

// Verdict is the result of an expectation, formatted with units.
type Verdict struct {
	About     string `json:"what"`
	Where     string `json:"where,omitempty"` // the cells to which the verdict applies; empty: all
	Expected  string `json:"expected"`
	Got       string `json:"got"`
	Tolerance string `json:"tolerance,omitempty"`
	Pass      bool   `json:"pass"`
	// Published is the paper's value if the theoretical value differs from it, and Why explains the
	// difference.
	Published string `json:"published,omitempty"`
	Why       string `json:"why,omitempty"`
	// Source is the source of the expected value, and Because is the reason for the tolerance.
	Source  string `json:"source,omitempty"`
	Because string `json:"because,omitempty"`
}

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

type pageData struct {
	Report *Report
	Runs   string
	Dark   template.CSS // colors of the dark theme
	Table  resultTable
	Full   []fullTable
	// Expected has the verdicts, grouped by subject.
	Expected []verdictGroup
	Passed   int
	Failed   int
	Figures  []figureData // figures of all cells
	Parts    []partData
	Omitted  []string // runs whose figures are not in the page
	Wheres   bool     // some verdicts apply to certain cells only
	Papers   bool     // some verdicts have a published value
	Sources  bool     // some verdicts have a source
	HasReal  bool     // some cells ran in real time
	// Unfinished describes the cells with runs that did not finish.
	Unfinished []string
}

type figureData struct {
	Title, Caption, File string
	Number               int
	SVG                  template.HTML
	Narrow               template.HTML // narrow figure for the screen of a phone
}

type partData struct {
	Title   string
	Closed  bool // initially closed
	Notes   []string
	Figures []figureData
}

func (r *Report) Write(w io.Writer) error {
	d := pageData{Report: r, Runs: describe(r.Cells)}
	c := newCompared(r.Cells, r.Metrics)
	d.Table, d.Full = c.table(), c.fullTables()
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Pass {
			d.Passed++
		} else {
			d.Failed++
		}
		d.Wheres = d.Wheres || v.Where != ""
		d.Papers = d.Papers || v.Published != "" || v.Why != ""
		d.Sources = d.Sources || v.Source != ""
	}
	d.Expected = grouped(r.Verdicts)
	for i := range r.Cells {
		d.HasReal = d.HasReal || r.Cells[i].Real
	}
	d.Unfinished = d.Table.unfinished()
	number := 0
	add := func(list []figureData, plots []Plot) ([]figureData, error) {
		for i := range plots {
			number++
			f, err := plots[i].data(number)
			if err != nil {
				return nil, err
			}
			list = append(list, f)
		}
		return list, nil
	}
	var err error
	if d.Figures, err = add(nil, r.Plots); err != nil {
		return err
	}
	drawn := 0
	for i, s := range r.Sections {
		part := partData{Title: s.Title, Notes: s.Notes, Closed: i > 0}
		if drawn > maxDrawn {
			d.Omitted = append(d.Omitted, s.Title)
			continue
		}
		if part.Figures, err = add(nil, s.Plots); err != nil {
			return err
		}
		for _, f := range part.Figures {
			drawn += len(f.SVG) + len(f.Narrow)
		}
		d.Parts = append(d.Parts, part)
	}
	d.Dark = template.CSS(chart.Themes(d.colors()...))
	var b bytes.Buffer // a template that fails would leave half a page
	if err := pageTemplate.Execute(&b, d); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

func (d *pageData) colors() []string {
	var texts []string
	add := func(list []figureData) {
		for _, f := range list {
			texts = append(texts, string(f.SVG))
		}
	}
	add(d.Figures)
	for _, p := range d.Parts {
		add(p.Figures)
	}
	for i := range d.Table.Rows {
		texts = append(texts, string(d.Table.Rows[i].Color))
	}
	return texts
}

// phoneWidth is the width in points of figures for phones. The text has its normal size.
const phoneWidth = 270

func (p *Plot) data(number int) (figureData, error) {
	var b, narrow strings.Builder
	if err := p.chart.WriteInline(&b, Style{}); err != nil {
		return figureData{}, err
	}
	if err := p.chart.WriteInline(&narrow, Style{Width: phoneWidth}); err != nil {
		return figureData{}, err
	}
	return figureData{
		Title: p.heading(), Caption: p.Caption, File: p.Name, Number: number,
		// The canvas has escaped the texts.
		SVG: template.HTML(b.String()), Narrow: template.HTML(narrow.String()),
	}, nil
}

// verdictGroup has the verdicts on one subject, in several cells.
type verdictGroup struct {
	About    string
	Verdicts []Verdict
}

func (g verdictGroup) Several() bool { return len(g.Verdicts) > 1 }

func grouped(list []Verdict) []verdictGroup {
	var groups []verdictGroup
	for _, v := range list {
		if n := len(groups); n > 0 && groups[n-1].About == v.About {
			groups[n-1].Verdicts = append(groups[n-1].Verdicts, v)
			continue
		}
		groups = append(groups, verdictGroup{v.About, []Verdict{v}})
	}
	return groups
}
