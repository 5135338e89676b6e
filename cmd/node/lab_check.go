package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/repl"
)

type labCheckOptions struct {
	workers  int
	failed   bool
	list     bool
	json     bool
	markdown bool
}

var errExpectations = errors.New("some expectations failed")

func labCheckCommand() *cobra.Command {
	var o labCheckOptions
	c := &cobra.Command{
		Use:   "check [PRESET|FAMILY|FILE|DIR]...",
		Short: "compare results with theory and publications",
		Long: "Run experiments and compare their results with the expectations in their files,\n" +
			"which come from theory or publications. Without arguments, it runs all presets\n" +
			"that have expectations. A FAMILY is the beginning of a name: `pantheon` selects\n" +
			"all presets whose names begin with it. If a preset has exactly that name, add *:\n" +
			"'fence*' selects fence and all others of its family. For a directory of results,\n" +
			"it checks those and runs nothing. The command fails if an expectation fails.",
		Example: "  node lab check\n" +
			"  node lab check pantheon\n" +
			"  node lab check --list\n" +
			"  node lab check tahoe-low lab/mine",
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) (
			[]string, cobra.ShellCompDirective,
		) {
			return append(lab.PresetNames(), lab.PresetFamilies()...),
				cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.list && (o.failed || o.markdown) {
				return misuse(c, errors.New("--list runs nothing: use it without --failed and "+
					"--markdown"))
			}
			return o.run(c, args)
		},
	}
	f := c.Flags()
	f.IntVarP(&o.workers, "jobs", "j", runtime.GOMAXPROCS(0), "run `N` cells at a time")
	repl.Limit(c, 1, repl.Unlimited, "jobs")
	f.BoolVar(&o.failed, "failed", false, "print only the expectations that fail")
	f.BoolVar(&o.list, "list", false, "list the checks, and run nothing")
	f.BoolVar(&o.json, "json", false, "print one JSON array")
	f.BoolVar(&o.markdown, "markdown", false, "print a Markdown page, without durations")
	return c
}

// checked is a verdict as --json prints it.
type checked struct {
	Experiment string `json:"experiment"`
	figure.Verdict
	Line int `json:"line"`
}

// checks returns the selected experiments, each once. An experiment without expectations is skipped
// if a pattern selects it, and is an error if an argument is its name.
func (o *labCheckOptions) checks(args []string) ([]toCheck, error) {
	if len(args) == 0 {
		args = []string{"*"}
	}
	var out []toCheck
	seen := map[string]bool{}
	add := func(name string, named bool) error {
		if seen[name] {
			return nil
		}
		s, err := lab.Load(lab.Request{Experiment: name, Version: buildMark()})
		switch {
		case !named && errors.Is(err, lab.ErrRealOnly):
			return nil
		case err != nil:
			return &checkError{name, err}
		case len(s.Cells[0].Expect) > 0:
			seen[name] = true
			out = append(out, toCheck{name, s})
		case named:
			return &checkError{
				name, &usageError{fmt.Errorf("%s: its file has no expectations", name)},
			}
		}
		return nil
	}
	for _, arg := range args {
		family := lab.PresetFamily(arg)
		if arg == "*" {
			family = lab.PresetNames()
		}
		_, missing := os.Stat(arg)
		if _, known := lab.FindPreset(arg); known || len(family) == 0 || missing == nil {
			if err := add(arg, true); err != nil {
				return nil, err
			}
			continue
		}
		had := len(out)
		for _, name := range family {
			if err := add(name, false); err != nil {
				return nil, err
			}
		}
		if len(out) == had && !seen[family[0]] {
			return nil, &checkError{arg, &usageError{fmt.Errorf("%s: no expectations in %s",
				arg, counted(len(family), "preset"))}}
		}
	}
	return out, nil
}

type toCheck struct {
	name  string
	study *lab.Study
}

type checkError struct {
	name  string
	cause error
}

func (e *checkError) Error() string { return e.cause.Error() }
func (e *checkError) Unwrap() error { return e.cause }

func (o *labCheckOptions) run(c *cobra.Command, args []string) error {
	checks, err := o.checks(args)
	if bad, ok := errors.AsType[*checkError](err); ok {
		if errors.Is(err, lab.ErrUnknown) {
			names := append(experimentNames(), lab.PresetFamilies()...)
			if slices.Contains(names, bad.name) || strings.HasPrefix(bad.name, "rip-") {
				return misuse(c, fmt.Errorf("%q has no expectations: it has no file", bad.name))
			}
			return misuse(c, unknown(bad.cause, bad.name, names))
		}
		return labError(c, bad.name, bad.cause)
	}
	if o.list {
		return o.tellChecks(c, checks)
	}
	ctx, stop := endBySignal(c.Context())
	defer stop()
	began := time.Now()
	if o.markdown {
		if _, err := fmt.Fprint(c.OutOrStdout(), markdownHead); err != nil {
			return err
		}
	}
	list, sum := []checked{}, lab.Tally{}
	for _, one := range checks {
		j, err := o.judge(ctx, c, one.study)
		if err != nil {
			return labError(c, one.name, err)
		}
		sum.Add(j.Tally())
		if o.json {
			list = append(list, verdicts(j)...)
			continue
		}
		if err := o.tell(c, j); err != nil {
			return err
		}
	}
	switch {
	case o.json:
		err = json.NewEncoder(c.OutOrStdout()).Encode(list)
	case o.markdown:
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s.\n", sum)
	default:
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s; took %s\n", sum, long(time.Since(began)))
	}
	if err != nil {
		return err
	}
	if sum.Failed+sum.Changed > 0 {
		return jsonError{errExpectations}
	}
	return nil
}

func (o *labCheckOptions) tellChecks(c *cobra.Command, checks []toCheck) error {
	type entry struct {
		Name   string `json:"name"`
		About  string `json:"about"`
		Expect int    `json:"expectations"`
	}
	list := make([]entry, 0, len(checks))
	total := 0
	for _, one := range checks {
		n := len(one.study.Cells[0].Expect)
		list = append(list, entry{one.name, one.study.About, n})
		total += n
	}
	out := c.OutOrStdout()
	if o.json {
		return json.NewEncoder(out).Encode(list)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, e := range list {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%s\n", e.Name, e.Expect, e.About)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s in %s; most hold for each cell of a sweep\n",
		counted(total, "expectation"), counted(len(list), "experiment"))
	return err
}

func (o *labCheckOptions) tell(c *cobra.Command, j *lab.Judged) error {
	switch {
	case o.markdown:
		return writeMarkdown(c.OutOrStdout(), j)
	case o.failed && j.Failed() == 0:
		return nil
	}
	if err := j.Print(c.OutOrStdout(), o.failed); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.OutOrStdout())
	return err
}

func (o *labCheckOptions) judge(
	ctx context.Context, c *cobra.Command, s *lab.Study,
) (*lab.Judged, error) {
	if s.Dir != "" {
		r, err := lab.Read(s.Dir)
		if err != nil {
			return nil, err
		}
		return r.Judge(s.Cells)
	}
	progress := newProgress(newConsole(c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()))
	defer progress.end()
	return lab.Judge(ctx, s, lab.Options{Workers: o.workers, Progress: progress.tell})
}

func verdicts(j *lab.Judged) []checked {
	var out []checked
	for i, v := range j.Formatted() {
		out = append(out, checked{j.Name, v, j.Verdicts[i].Line})
	}
	return out
}
