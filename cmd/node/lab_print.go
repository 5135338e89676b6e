package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

type taken struct {
	real time.Duration
	now  bool // the command has run the trials; false: it only reads results
	// judged contains the verdicts on the expectations; nil: not checked.
	judged *lab.Judged
}

func (o *labRunOptions) print(c *cobra.Command, r *lab.Results, t taken) error {
	out := c.OutOrStdout()
	if o.json {
		var expectations []checked
		if t.judged != nil {
			expectations = verdicts(t.judged)
		}
		return json.NewEncoder(out).Encode(struct {
			*lab.Report
			Expectations []checked `json:"expectations,omitempty"`
		}{r.Report(), expectations})
	}
	shown := lab.TableOptions{Metrics: o.chosen(), All: o.all, LaTeX: o.latex}
	if err := r.Print(out, shown); err != nil || o.latex {
		return err
	}
	for _, note := range r.Notes {
		if _, err := fmt.Fprintln(out, note); err != nil {
			return err
		}
	}
	if err := printExpectations(out, r, t.judged); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, summaryLines(r, t))
	return err
}

// printExpectations prints whether the expectations hold, and lists those that fail.
func printExpectations(out io.Writer, r *lab.Results, j *lab.Judged) error {
	if j == nil || len(j.Verdicts) == 0 {
		return nil
	}
	if failed := j.Failed(); failed > 0 {
		if _, err := fmt.Fprintf(out, "\n%d of %s of ", failed,
			counted(len(j.Verdicts), "expectation")); err != nil {
			return err
		}
		if err := j.Print(out, true); err != nil {
			return err
		}
		_, err := fmt.Fprintln(out)
		return err
	}
	verdict := "all pass"
	if len(j.Verdicts) == 1 {
		verdict = "it passes"
	}
	if _, kept := r.Timings(); r.Real {
		verdict += " in virtual time"
		if !kept {
			verdict += "; real-time runs were late"
		}
	}
	_, err := fmt.Fprintf(out, "%s: %s\n", counted(len(j.Verdicts), "expectation"), verdict)
	return err
}

func (o *labRunOptions) chosen() []result.Metric {
	var metrics []result.Metric
	for _, m := range o.metrics {
		metrics = append(metrics, result.Metric(m))
	}
	return metrics
}

// summaryLines returns the last lines: the hash, the number of runs, and the path of the results.
func summaryLines(r *lab.Results, t taken) string {
	var virtual, live time.Duration
	for _, run := range r.Runs {
		if run.Clock.Real() {
			live += run.Virtual
		} else {
			virtual += run.Virtual
		}
	}
	text := "hash " + r.Hash() + "  " + counted(len(r.Runs), "run")
	switch {
	case live > 0 && virtual > 0:
		text += fmt.Sprintf(", %s of virtual time (which the hash covers) and %s of real time",
			long(virtual), long(live))
	case live > 0: // runs in real time have no hash
		text = counted(len(r.Runs), "run") + ", " + long(live) + " of real time"
	default:
		text += ", " + long(virtual) + " of virtual time"
	}
	switch {
	case !t.now:
	case r.Ran == 0:
		text += "; all existed before (--fresh runs them again)"
	case r.Ran < len(r.Runs):
		text += fmt.Sprintf("; %d of them now, in %s", r.Ran, long(t.real))
	default:
		text += " in " + long(t.real)
	}
	return text + "\n" + filepath.Join(r.Dir, r.File)
}

func long(d time.Duration) string {
	switch {
	case d >= time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	case d >= 10*time.Minute:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	case d >= 2*time.Minute:
		d = d.Round(time.Second)
		text := fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
		return strings.TrimSuffix(text, " 0 s")
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}

// progress shows the progress of a sweep on a terminal.
type progress struct {
	console *console
	label   string // printed before the numbers, including ": "
	unit    string // the unit of the numbers: run or part
	note    string // printed after the numbers, including ", "
	// first is the number of runs that were already finished at the start.
	first, done, of int
	told            bool
	began, last     time.Time
}

func newProgress(t *console) *progress {
	return &progress{console: t, unit: "run", began: time.Now()}
}

// tell is called when runs finish. The first call reports the runs that were already finished.
func (p *progress) tell(done, of int) {
	p.count(done, of)
	now := time.Now()
	if p.console.width == nil || done == of || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last = now
	// A failed write to the terminal must not stop a sweep.
	_, _ = fmt.Fprintf(p.console.err, "\r%s%s%s\x1b[K", p.label, p.text(now), p.note)
}

func (p *progress) count(done, of int) {
	if !p.told {
		p.told, p.first = true, done
	}
	p.done, p.of = done, of
}

// text returns how many runs are finished, and an estimate of the remaining time.
func (p *progress) text(now time.Time) string {
	text := fmt.Sprintf("%d of %s", p.done, counted(p.of, p.unit))
	if p.done > p.first && p.done < p.of {
		left := float64(now.Sub(p.began)) / float64(p.done-p.first) * float64(p.of-p.done)
		text += ", about " + long(time.Duration(left)) + " left"
	}
	return text
}

func (p *progress) end() {
	if !p.last.IsZero() {
		_, _ = fmt.Fprint(p.console.err, "\r\x1b[K")
	}
}

// stopped says which results an interrupted sweep has stored and how to resume it.
func (p *progress) stopped(dir string, single bool) {
	text := fmt.Sprintf("stopped: %d of %s are complete and stay in %s; repeat the command "+
		"to continue",
		p.done, counted(p.of, "run"), dir)
	if single {
		text = "stopped: only complete cells are kept, so there are no results"
	}
	_, _ = fmt.Fprintln(p.console.err, text)
}
