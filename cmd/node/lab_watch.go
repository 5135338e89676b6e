package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/batch"
	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

type labWatchOptions struct {
	once bool
	page string
}

const labWatchLong = `Show the progress of an experiment that runs elsewhere: in another terminal,
as a job of a batch system, or on a machine that shares the directory. The
command shows the runs and cells that are complete, the checks of complete
cells, and the last message of each part that has no results. It ends when
no run is missing, and changes nothing in the directory.

--page FILE also writes the report of the complete cells, with their
figures, after each change. A browser that shows FILE reloads it every 5 s
until the experiment is complete.`

func labWatchCommand() *cobra.Command {
	var o labWatchOptions
	c := &cobra.Command{
		Use:   "watch DIR",
		Short: "show the progress of an experiment",
		Long:  labWatchLong,
		Example: "  node lab watch lab/tahoe-low\n" +
			"  node lab watch /shared/mine --page mine.html\n" +
			"  node lab watch /shared/mine --once",
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := endBySignal(c.Context())
			defer stop()
			return labError(c, args[0], o.watch(ctx, c, args[0]))
		},
	}
	c.Flags().BoolVar(&o.once, "once", false, "print the progress once")
	c.Flags().StringVar(&o.page, "page", "", "write the report of complete cells to `FILE`")
	return c
}

// watch shows the progress until all runs are complete. With --once it shows the progress once.
func (o *labWatchOptions) watch(ctx context.Context, c *cobra.Command, dir string) error {
	t := newConsole(c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
	w := &sweepWatch{progress: newProgress(t), dir: dir}
	screen := t.shown && !t.dumb && !o.once
	last, drawn := "", ""
	for {
		began := time.Now()
		r, err := lab.Read(dir)
		if err != nil {
			return err
		}
		if err := w.refresh(ctx, r); err != nil {
			return err
		}
		// The estimate of the remaining time changes often. A new estimate alone prints no line.
		state := fmt.Sprint(w.done, w.facts, w.messages)
		if screen || state != last {
			if _, err := io.WriteString(t.out, w.lines(screen)); err != nil {
				return err
			}
			last = state
		}
		if o.page != "" && state != drawn {
			var page bytes.Buffer
			err := r.Preview(&page, w.messages)
			if err == nil {
				err = result.WriteFile(o.page, page.Bytes())
			}
			if err != nil {
				return err
			}
			drawn = state
		}
		if o.once || len(r.Runs) == r.Total() {
			return nil
		}
		// Reading large results takes long, so the interval is at least four times that time.
		select {
		case <-time.After(max(time.Second, 4*time.Since(began))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sweepWatch is the state of a directory of results for `node lab watch`.
type sweepWatch struct {
	*progress

	dir      string
	facts    []string // lines about cells, parts and checks
	messages []string // error messages of parts without results
	looks    int
	engine   string // the last status from the batch system
}

// refresh updates the numbers from the results, and from the batch job if there is one.
func (w *sweepWatch) refresh(ctx context.Context, r *lab.Results) error {
	cells, _ := r.Missing()
	w.count(len(r.Runs), r.Total())
	w.facts = []string{fmt.Sprintf("%d of %s complete", len(r.Cells)-len(cells),
		counted(len(r.Cells), "cell"))}
	judged, err := r.JudgeComplete()
	if err != nil {
		return err
	}
	if len(judged.Verdicts) > 0 {
		w.facts = append(w.facts, judged.Tally().String())
	}
	w.messages = nil
	j, err := batch.Read(w.dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(cells) == 0 {
		return nil // nothing was queued, or everything is complete
	}
	if err != nil {
		return err
	}
	missing := r.MissingParts(j.Parts)
	messages, stopped, failed, logs := j.ReadLogs(missing)
	w.messages = messages
	parts := []string{fmt.Sprintf("%d of %s done", j.Parts-len(missing), counted(j.Parts, "part"))}
	states := []string{"failed", "stopped", "started", "not started"}
	for i, n := range []int{
		len(messages), stopped, failed - stopped - len(messages), len(missing) - logs,
	} {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, states[i]))
		}
	}
	w.facts = append(w.facts, strings.Join(parts, ", "))
	// Query the batch system only every tenth time, because it serves other users, too.
	if w.looks++; w.looks%10 == 1 {
		w.engine = batchStatus(ctx, j)
	}
	if w.engine != "" {
		w.facts = append(w.facts, w.engine)
	}
	return nil
}

// batchStatus returns the batch system's status of a job, or "" if this machine cannot query it.
func batchStatus(ctx context.Context, j *batch.Job) string {
	engine, err := (&submitOptions{on: j.Engine}).engine()
	if err != nil || j.Task == "" || j.Engine == "local" {
		return ""
	}
	left, err := engine.Tasks(ctx, j)
	if err != nil {
		return ""
	}
	if left.Running+left.Waiting == 0 {
		return named(fmt.Sprintf("%s has no part left to run: `node lab submit %s --on %s` "+
			"continues", j.Engine, j.Dir, j.Engine))
	}
	text := fmt.Sprintf("%s: %d running, %d waiting", j.Engine, left.Running, left.Waiting)
	if left.Done > 0 { // batch.Kubernetes delivers results when all parts are done
		text += fmt.Sprintf(", %d done", left.Done)
	}
	if left.Reason != "" && left.Running == 0 {
		text += " (" + left.Reason + ")"
	}
	return text
}

// lines returns the progress as one line, or formatted for a terminal.
func (w *sweepWatch) lines(screen bool) string {
	text := strings.Join(append([]string{w.text(time.Now())}, w.facts...), "; ")
	if !screen {
		return strings.Join(append([]string{text}, w.messages...), "; ") + "\n"
	}
	const width, most = 40, 10
	full := width * w.done / max(1, w.of)
	bar := "[" + strings.Repeat("#", full) + strings.Repeat(" ", width-full) + "]"
	all := append([]string{w.dir, bar + " " + w.text(time.Now())}, w.facts...)
	all = append(all, w.messages[:min(most, len(w.messages))]...)
	if more := len(w.messages) - most; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return "\x1b[H\x1b[2J" + strings.Join(all, "\n") + "\n"
}
