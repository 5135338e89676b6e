// Command mutants plants faults in the program, one at a time, and prints which of the laboratory's
// checks fail. A check that no fault makes fail checks nothing.
//
// Each fault is an edit of one source file, which Go builds with -overlay, so that no file of the
// tree changes. Results are kept in -dir by a hash of the sources: an interrupted run continues
// where it stopped. The command exits with 1 if a check passes under all faults.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// verdict is one line of `node lab check --json`.
type verdict struct {
	Experiment, What, Source string
	Line                     int
	Pass                     bool
}

// check is one expectation of a preset, in all of its cells.
type check struct {
	preset string
	line   int
}

// row is the result of every fault for a check.
type row struct {
	check
	what  string
	own   bool
	red   bool
	marks []byte // indexed by fault: '#' fails, '.' passes, ' ' was not run
}

type options struct {
	dir            string
	sources        string // hash of the source files
	mutant, preset *regexp.Regexp
}

func main() {
	var o options
	mutant := flag.String("mutant", "", "plant only the faults whose names match `REGEXP`")
	preset := flag.String("preset", "", "check only the presets whose names match `REGEXP`")
	flag.StringVar(&o.dir, "dir", "bin/mutants", "keep results in `DIR`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if o.mutant, err = regexp.Compile(*mutant); err == nil {
		o.preset, err = regexp.Compile(*preset)
	}
	if err == nil {
		err = o.run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run plants the faults and writes the table.
func (o *options) run(ctx context.Context, w io.Writer) error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	all, err := presets(ctx)
	if err != nil {
		return err
	}
	if o.sources, err = sources(); err != nil {
		return err
	}
	wanted := slices.DeleteFunc(all, func(name string) bool { return !o.preset.MatchString(name) })
	sound, err := o.judge(ctx, &mutant{name: "none", presets: wanted})
	if err != nil {
		return err
	}
	for _, v := range sound {
		if !v.Pass {
			return fmt.Errorf("%s, line %d: %q fails without a fault", v.Experiment, v.Line, v.What)
		}
	}
	var list []mutant
	for _, m := range mutants {
		named := m.presets
		m.presets = slices.DeleteFunc(slices.Clone(wanted), func(name string) bool {
			return !slices.Contains(named, name)
		})
		if o.mutant.MatchString(m.name) && len(m.presets) > 0 {
			list = append(list, m)
		}
	}
	rows := rowsOf(sound, len(list))
	for i := range list {
		verdicts, err := o.judge(ctx, &list[i])
		if err != nil {
			return fmt.Errorf("%s: %w", list[i].name, err)
		}
		mark(rows, i, verdicts)
	}
	return write(w, list, rows)
}

// judge checks the presets with a fault in the program. It reuses the results of an earlier run of
// the same sources.
func (o *options) judge(ctx context.Context, m *mutant) ([]verdict, error) {
	began, program := time.Now(), ""
	red := map[check]bool{}
	var all []verdict
	for _, name := range m.presets {
		kept, err := o.kept(m, name)
		if err != nil {
			return nil, err
		}
		out, err := os.ReadFile(kept)
		if err != nil {
			if program == "" {
				if program, err = build(ctx, m, o.dir); err != nil {
					return nil, err
				}
			}
			if out, err = runChecks(ctx, program, name); err != nil {
				return nil, fmt.Errorf("check %s: %w", name, err)
			}
			if err := os.WriteFile(kept, out, 0o644); err != nil {
				return nil, err
			}
		}
		var verdicts []verdict
		if err := json.Unmarshal(out, &verdicts); err != nil {
			return nil, fmt.Errorf("%s: read what node lab check printed: %w", name, err)
		}
		all = append(all, verdicts...)
	}
	for _, v := range all {
		if !v.Pass {
			red[check{v.Experiment, v.Line}] = true
		}
	}
	fmt.Fprintf(os.Stderr, "%-16s %3d checks failed, %s\n", m.name, len(red),
		time.Since(began).Round(time.Second))
	if program == "" {
		return all, nil
	}
	return all, os.Remove(program)
}

// runChecks runs a preset and returns its verdicts.
func runChecks(ctx context.Context, program, preset string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, program, "lab", "check", "--json", preset).Output()
	if _, red := errors.AsType[*exec.ExitError](err); err != nil && (!red || len(out) == 0) {
		return nil, err
	}
	return out, nil
}

// kept returns the file for a preset's verdicts, named after a hash of the fault, the sources and
// the preset.
func (o *options) kept(m *mutant, preset string) (string, error) {
	files, err := filepath.Glob("internal/lab/presets/*/" + preset + ".yaml")
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("%d files of preset %s: %w", len(files), preset, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %q", o.sources, m.file, m.old, m.new, text)
	return filepath.Join(o.dir, fmt.Sprintf("%s-%s-%x.json", m.name, preset, h.Sum(nil)[:6])), nil
}

// sources hashes the Go files of the program and the versions of its modules.
func sources() (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || name == "judge/mutants" || d.Name() == "testdata"):
			return fs.SkipDir
		case name != "go.sum" &&
			(filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go")):
			return nil
		}
		text, err := os.ReadFile(name)
		fmt.Fprintf(h, "%q %x", name, sha256.Sum256(text))
		return err
	})
	return string(h.Sum(nil)), err
}

// presets lists the presets that have expectations.
func presets(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "run", "./cmd/node", "lab", "check", "--list",
		"--json").Output()
	if err != nil {
		return nil, fmt.Errorf("list the presets: %w", err)
	}
	var list []struct{ Name string }
	err = json.Unmarshal(out, &list)
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
	}
	return names, err
}

// build builds the program with a fault in a folder, and returns the program's path.
func build(ctx context.Context, m *mutant, dir string) (string, error) {
	program := filepath.Join(dir, m.name)
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program}
	if m.file != "" {
		overlay, err := m.overlay(dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	out, err := exec.CommandContext(ctx, "go", append(args, "./cmd/node")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return filepath.Abs(program)
}

// overlay writes the edited file, and the file that makes Go read it instead of the original.
func (m *mutant) overlay(dir string) (string, error) {
	source, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	edited, err := m.edit(string(text))
	if err != nil {
		return "", err
	}
	name, err := filepath.Abs(filepath.Join(dir, m.name+".go.txt"))
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: name}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, m.name+".overlay")
	return file, errors.Join(os.WriteFile(name, []byte(edited), 0o644),
		os.WriteFile(file, overlay, 0o644))
}

// edit plants the fault in a file's text.
func (m *mutant) edit(text string) (string, error) {
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("%s contains %q %d times, expected once", m.file, m.old, n)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}

// rowsOf lists the checks in the order of the verdicts, without duplicates.
func rowsOf(verdicts []verdict, faults int) []row {
	var rows []row
	for _, v := range verdicts {
		c := check{v.Experiment, v.Line}
		if n := len(rows); n == 0 || rows[n-1].check != c {
			rows = append(rows, row{
				check: c, what: v.What, own: v.Source == "own regression",
				marks: slices.Repeat([]byte{' '}, faults),
			})
		}
	}
	return rows
}

// mark records which checks a fault makes fail.
func mark(rows []row, fault int, verdicts []verdict) {
	for _, v := range verdicts {
		i := slices.IndexFunc(rows, func(r row) bool {
			return r.check == check{v.Experiment, v.Line}
		})
		r := &rows[i]
		switch {
		case !v.Pass:
			r.marks[fault], r.red = '#', true
		case r.marks[fault] == ' ':
			r.marks[fault] = '.'
		}
	}
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!$%&*+<=>?@^~"

// write writes the table. It returns an error if checks pass under all faults.
func write(w io.Writer, list []mutant, rows []row) error {
	var b, green strings.Builder
	b.WriteString(pageHead + "| | fault | in | failed checks |\n|---|---|---|---|\n")
	for i, m := range list {
		n := 0
		for _, r := range rows {
			if r.marks[i] == '#' {
				n++
			}
		}
		fmt.Fprintf(&b, "| %c | %s: %s | %s | %d |\n", letters[i], m.name, m.about, m.file, n)
	}
	fmt.Fprintf(&b, "\n```text\n%-28s %s\n", "", letters[:len(list)])
	all, stay := 0, 0
	for _, r := range rows {
		name := fmt.Sprintf("%s:%d", r.preset, r.line)
		fmt.Fprintf(&b, "%-28s %s  %s\n", name, r.marks, r.what)
		if r.own {
			continue
		}
		if all++; !r.red {
			stay++
			fmt.Fprintf(&green, "- %s: %s\n", name, r.what)
		}
	}
	fmt.Fprintf(&b, "```\n\n%d of %d checks fail under at least one fault.\n", all-stay, all)
	if stay > 0 {
		fmt.Fprintf(&b, "These hold under all faults:\n\n%s", green.String())
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if stay > 0 {
		return fmt.Errorf("%d checks hold under all faults: tighten or delete them", stay)
	}
	return nil
}

const pageHead = "# Planted faults and the checks that detect them\n\n" +
	"`make lab-mutants` writes this page. Each fault is one edit of the program's source. The\n" +
	"table has a line for each expectation of a preset, by its file and line: `#` means that\n" +
	"the check fails under the fault, `.` that it holds, and a blank that it was not run.\n\n"
