package lab

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// These are the names of the figure files.
const (
	reportFile  = "report.html"
	plotsFolder = "plots"
)

// DrawOptions are the options for drawing results.
type DrawOptions struct {
	Workers int
	// Metrics are the metrics in the table and in the figures of sweeps; nil: the metrics that the
	// experiment's file chooses, or else the default ones.
	Metrics []result.Metric
	// Style is the size and the font of the figures in files. The report uses the default style.
	Style figure.Style
	// Judged has the verdicts about the runs; nil: the expectations were not checked.
	Judged *Judged
	// Other has the results of another simulator with the name OtherName; nil: no other simulator.
	Other     *Results
	OtherName string
}

// Draw draws the figures of a directory in all formats: the figures of all cells together, and the
// figures of each cell with a record. It writes the report with all figures and returns its path.
func (r *Results) Draw(d DrawOptions) (report string, err error) {
	page, jobs, err := r.page(&d)
	if err != nil {
		return "", err
	}
	if err := r.drawAll(jobs, d.Workers, d.Style); err != nil {
		return "", err
	}
	var text bytes.Buffer
	if err := page.Write(&text); err != nil {
		return "", err
	}
	r.File = reportFile
	report = filepath.Join(r.Dir, reportFile)
	return report, result.WriteFile(report, text.Bytes())
}

// Preview writes the report of the complete cells. While runs are missing, the page reloads itself,
// and shows the number of complete runs and the given notes.
func (r *Results) Preview(w io.Writer, notes []string) error {
	judged, err := r.JudgeComplete()
	if err != nil {
		return err
	}
	have := r.complete()
	page, _, err := have.page(&DrawOptions{Judged: judged})
	if err != nil {
		return err
	}
	if len(have.Runs) < r.Total() {
		page.Hash, page.Reload = "", true
		page.Notes = append([]string{fmt.Sprintf("%d of %d runs are complete. The page shows "+
			"the cells that have all of their runs.", len(r.Runs), r.Total())}, notes...)
	}
	return page.Write(w)
}

// page makes the report of a directory, and lists the plots to draw into files.
func (r *Results) page(d *DrawOptions) (*figure.Report, []plotFile, error) {
	if d.Metrics == nil {
		d.Metrics = r.Metrics
	}
	cells := r.figureCells()
	d.Judged.theory(cells)
	page := &figure.Report{
		Name: r.Name, About: r.About, Version: r.Version, Seed: r.Seed, Hash: r.Hash(),
		Notes: r.notes(), Cells: cells, Warmup: r.warmup(),
		Metrics: d.Metrics, Verdicts: d.Judged.Formatted(),
		Plots: figure.SweepPlots(cells, d.Metrics),
	}
	var err error
	if page.Comparison, err = r.comparedTable(d); err != nil {
		return nil, nil, err
	}
	page.Command, page.Here = r.repeat()
	var kept bool
	page.Timings, kept = r.Timings()
	page.Late = !kept
	document, err := files.Text(filepath.Join(r.Dir, documentFile), files.MaxData)
	if err != nil {
		return nil, nil, err
	}
	page.Document = string(document)
	var jobs []plotFile
	add := func(prefix string, plots []figure.Plot) {
		for i := range plots {
			jobs = append(jobs, plotFile{prefix + plots[i].Name, &plots[i]})
		}
	}
	add("", page.Plots)
	for cell := range r.Cells {
		if len(r.runsOf(cell)) == 0 {
			continue
		}
		both, err := r.comparedSection(cell, d)
		if err != nil {
			return nil, nil, err
		}
		if both != nil {
			add(recordName(len(r.Cells), cell)+"-beside-", both.Plots)
			page.Sections = append(page.Sections, *both)
		}
		record, err := r.Record(cell)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		s := figure.Section{
			Title: r.sectionTitle(cell), Notes: record.Notes, Plots: figure.Plots(record),
		}
		add(recordName(len(r.Cells), cell)+"-", s.Plots)
		page.Sections = append(page.Sections, s)
	}
	return page, jobs, nil
}

func (r *Results) sectionTitle(cell int) string {
	title := cmp.Or(settingsText(r.Cells[cell].Set, " ", ", "), r.Name)
	if r.Cells[cell].Trials > 1 {
		title += ", the first trial"
	}
	return title
}

func (r *Results) figureCells() []figure.Cell {
	cells := make([]figure.Cell, len(r.Cells))
	for i := range r.Cells {
		for _, s := range r.Cells[i].Set {
			cells[i].Set = append(cells[i].Set, figure.Setting{Key: s.Name, Value: s.Value})
		}
		cells[i].Trials = r.runsOf(i)
		if r.Real {
			cells[i].Real, cells[i].Clock = isReal(i), r.clockName(i)
		}
	}
	return cells
}

func (r *Results) notes() []string {
	if cells, runs := r.Missing(); runs > 0 {
		return []string{fmt.Sprintf("Incomplete: %d runs of %d cells are missing.", runs,
			len(cells))}
	}
	return r.unsteady(r.rows(true))
}

type plotFile struct {
	name string
	plot *figure.Plot
}

// drawAll draws plots into files, several at a time. It removes the files of earlier plots.
func (r *Results) drawAll(jobs []plotFile, workers int, style figure.Style) error {
	folder := filepath.Join(r.Dir, plotsFolder)
	for _, format := range figure.Formats {
		old, err := filepath.Glob(filepath.Join(folder, "*."+format))
		if err != nil {
			return err
		}
		for _, path := range old {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	todo := make(chan plotFile)
	errs := make([]error, max(1, workers))
	var busy sync.WaitGroup
	for i := range errs {
		busy.Go(func() {
			for d := range todo {
				if errs[i] == nil {
					errs[i] = d.plot.WriteFiles(folder, d.name, style)
				}
			}
		})
	}
	for _, d := range jobs {
		todo <- d
	}
	close(todo)
	busy.Wait()
	return errors.Join(errs...)
}

// Plots returns the paths of the figures in SVG, which a page can scale.
func (r *Results) Plots() ([]string, error) {
	return filepath.Glob(filepath.Join(r.Dir, plotsFolder, "*.svg"))
}

// repeat returns two commands that run the experiment again. The first one works in any folder if
// the experiment is a preset, and otherwise in the folder in which it was run. The second one works
// in the folder of the results. Each may be empty.
func (r *Results) repeat() (command, here string) {
	const run, anew = "node lab run ", " --fresh"
	if flags, ok := r.ofPreset(); ok {
		return run + r.Name + flags + anew, ""
	}
	here = run + "." + anew
	if filepath.IsAbs(r.Dir) || r.Dir == "." {
		return "", here // other machines may not have that folder
	}
	return run + diagnostic.ShellWord(filepath.ToSlash(r.Dir)) + anew, here
}

// ofPreset reports whether an unchanged preset has these results, and with which flags.
func (r *Results) ofPreset() (flags string, ok bool) {
	if _, ok := FindPreset(r.Name); !ok {
		return "", false
	}
	q := Request{Experiment: r.Name, Version: r.Version, Real: r.Real}
	s, err := Load(q)
	if err == nil && s.Seed != r.Seed {
		seed := fmt.Sprint("seed=", r.Seed)
		flags = " --" + strings.Replace(seed, "=", " ", 1)
		q.Changes = []Change{{Text: seed}}
		s, err = Load(q)
	}
	if err != nil || s.Plan != r.Plan {
		return "", false
	}
	trials, same := 0, true
	for i := range r.Cells {
		n := r.Cells[i].Trials
		if r.Real && isReal(i) {
			if n != s.Cells[i].Trials {
				return "", false
			}
			continue
		}
		if trials > 0 && n != trials {
			return "", false
		}
		trials, same = n, same && n == s.Cells[i].Trials
	}
	if !same {
		flags += fmt.Sprint(" --trials ", trials)
	}
	if r.Real {
		flags += " --real"
	}
	return flags, true
}

// warmup describes the warm-up, which averages exclude. It returns "" without a warm-up.
func (m *Manifest) warmup() string {
	least, most := m.Cells[0].Warmup, 0.0
	for i := range m.Cells {
		least, most = min(least, m.Cells[i].Warmup), max(most, m.Cells[i].Warmup)
	}
	switch {
	case most == 0:
		return ""
	case least == most:
		return fmt.Sprintf("the first %g s", most)
	}
	return fmt.Sprintf("the first %g to %g s, depending on the cell,", least, most)
}
