//go:build linux

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/bench/lead"
	"github.com/tidepool-net/tidepool/bench/netns"
	"github.com/tidepool-net/tidepool/bench/report"
)

// allTimeout limits the whole run, which takes a quarter of an hour on a machine with two cores.
const allTimeout = time.Hour

// all runs every measurement and writes the page.
func all(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("all", flag.ContinueOnError)
	span := flags.Duration("for", 2*time.Second, "how long each run counts")
	rounds := flags.Int("rounds", 6, "runs of each case") // the minimum for benchstat
	only := flags.String("only", "", "run only cases, peers and figures with `TEXT` in the name; "+
		"write no files")
	root := flags.String("root", repository(), "the repository's `FOLDER`")
	brief := flags.Bool("brief", false, "leave out the 5 GB transfer and the experiments")
	if err := parse(flags, args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, allTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "tidepool-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &session{
		turns: lead.Turns{Rounds: *rounds, Log: os.Stderr}, span: *span, out: os.Stdout,
		only: *only, whole: true, brief: *brief, root: *root,
	}
	if err := s.check(); err != nil {
		return err
	}
	defer s.close()
	netns.Sweep(ctx)
	if s.program, err = lead.Build(ctx, *root, dir); err != nil {
		return err
	}
	r := s.machine(ctx)
	if err := s.measureAll(ctx, r); err != nil {
		return err
	}
	r.Checks = points(r)
	if *only != "" {
		unknown := func(c report.Check) bool { return !c.Known }
		r.Checks = slices.DeleteFunc(r.Checks, unknown)
	} else {
		if err := s.profiles(ctx, r, filepath.Join(*root, pageFolder)); err != nil {
			return err
		}
		if err := write(r, *root); err != nil {
			return err
		}
	}
	_, err = fmt.Fprint(s.out, r.Table())
	return err
}

// measureAll measures all rows and figures. A measurement that fails is recorded as skipped.
func (s *session) measureAll(ctx context.Context, r *report.Report) error {
	for _, c := range s.streams() {
		rows, skipped := s.measure(ctx, &c)
		r.Rows = append(r.Rows, rows...)
		r.Skipped = append(r.Skipped, skipped...)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for _, c := range costs() {
		if !strings.Contains(c.name, s.only) {
			continue
		}
		row, err := s.measureCost(ctx, &c)
		if err != nil {
			r.Skipped = append(r.Skipped, report.Skipped{Case: c.name, Skip: err.Error()})
			continue
		}
		r.Rows = append(r.Rows, row)
	}
	for _, m := range measurements() {
		if !strings.Contains(m.name, s.only) {
			continue
		}
		if s.brief && m.long {
			r.Skipped = append(r.Skipped, report.Skipped{Case: m.name, Skip: "left out by -brief"})
			continue
		}
		s.logf("%s\n", m.name)
		list, err := m.once(ctx, s)
		r.Facts = append(r.Facts, list...)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.Skipped = append(r.Skipped, report.Skipped{Case: m.name, Skip: err.Error()})
		}
	}
	r.Load += ", " + load() + " at its end"
	return nil
}

// machine returns a report that describes the machine, the versions and the settings.
func (s *session) machine(ctx context.Context) *report.Report {
	line := func(name string, args ...string) string {
		c := exec.CommandContext(ctx, name, args...)
		c.Dir = s.root
		out, err := c.Output()
		if err != nil {
			return "unknown"
		}
		return strings.TrimSpace(string(out))
	}
	r := &report.Report{
		Commit: line("git", "describe", "--always", "--dirty"),
		Kernel: release(line("uname", "-sr")),
		Go:     runtime.Version(), CPUs: runtime.NumCPU(), CPU: processor(),
		When: time.Now().UTC().Format("2006-01-02 15:04 MST"),
		Load: load() + " at the start",
		Span: s.span.String(), Rounds: s.turns.Rounds,
	}
	r.Machine = fmt.Sprintf("%s, %d CPUs, %s, %s", r.CPU, r.CPUs, r.Kernel, r.Go)
	return r
}

// release shortens a kernel version to its numbers, without the vendor's suffix.
func release(uname string) string {
	version, _, _ := strings.Cut(uname, "-")
	return version
}

// processor returns the CPU's model name.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	_, rest, ok := strings.Cut(string(text), "model name")
	if !ok {
		return runtime.GOARCH
	}
	name, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(name, " \t:")
}

// load describes the load average of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

// pageFolder holds the page's pictures and data files.
const pageFolder = "docs/performance"

// write writes the page and its files.
func write(r *report.Report, root string) error {
	folder := filepath.Join(root, pageFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for path, do := range map[string]func(*os.File) error{
		filepath.Join(folder, "ratios.svg"): func(f *os.File) error { return r.WriteFigure(f) },
		filepath.Join(folder, "results.txt"): func(f *os.File) error {
			return r.WriteBenchmarks(f)
		},
		filepath.Join(folder, "results.json"): func(f *os.File) error {
			e := json.NewEncoder(f)
			e.SetIndent("", "\t")
			return e.Encode(r)
		},
		filepath.Join(root, "docs/performance.md"): func(f *os.File) error {
			return r.WritePage(f)
		},
	} {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := do(f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
