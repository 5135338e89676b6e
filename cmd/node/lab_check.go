package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/preset"
)

// labCheckOptions are the flags of `node lab check`.
type labCheckOptions struct {
	workers  int
	failed   bool
	json     bool
	markdown bool
}

// errExpectations is the error of expectations that do not hold.
var errExpectations = errors.New("not all is as expected")

func labCheckCommand() *cobra.Command {
	var o labCheckOptions
	c := &cobra.Command{
		Use:   "check [PRESET|FILE|DIR]...",
		Short: "hold what comes out against what is expected",
		Long: "Run experiments and hold what they come to against what their files expect, by\n" +
			"theory or by what was published: all presets that expect something, unless some\n" +
			"are named. Of a directory of results those are looked at, and nothing is run.\n" +
			"It fails if an expectation does.",
		Example: "  node lab check\n" +
			"  node lab check tahoe-low lab/mine",
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) (
			[]string, cobra.ShellCompDirective,
		) {
			return preset.Names(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.workers < 1 {
				return misuse(c, fmt.Errorf("--jobs %d: want 1 or more", o.workers))
			}
			return o.run(c, args)
		},
	}
	f := c.Flags()
	f.IntVarP(&o.workers, "jobs", "j", runtime.GOMAXPROCS(0), "run `N` at a time")
	f.BoolVar(&o.failed, "failed", false, "print only what does not hold")
	f.BoolVar(&o.json, "json", false, "print one JSON array")
	f.BoolVar(&o.markdown, "markdown", false, "print a page in Markdown, without how long it took")
	return c
}

// checked is a verdict as --json prints it.
type checked struct {
	Experiment string `json:"experiment"`
	What       string `json:"what"`
	Where      string `json:"where,omitempty"`
	Expected   string `json:"expected"`
	Got        string `json:"got"`
	Tolerance  string `json:"tolerance,omitempty"`
	Pass       bool   `json:"pass"`
	Published  string `json:"published,omitempty"`
	Why        string `json:"why,omitempty"`
}

func (o *labCheckOptions) run(c *cobra.Command, names []string) error {
	all := len(names) == 0
	if all {
		names = preset.Names()
	}
	ctx, stop := endBySignal(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	began := time.Now()
	if o.markdown {
		if _, err := fmt.Fprint(c.OutOrStdout(), markdownHead); err != nil {
			return err
		}
	}
	list, total, failed := []checked{}, 0, 0
	for _, name := range names {
		j, err := o.judge(ctx, c, name, all)
		if err != nil {
			return labError(c, name, err)
		}
		if j == nil {
			continue
		}
		total += len(j.Verdicts)
		failed += j.Failed()
		switch {
		case o.json:
			list = append(list, verdicts(j)...)
		case o.markdown:
			if err := writeMarkdown(c.OutOrStdout(), j); err != nil {
				return err
			}
		case !o.failed || j.Failed() > 0:
			if err := j.Print(c.OutOrStdout(), o.failed); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(c.OutOrStdout()); err != nil {
				return err
			}
		}
	}
	sum := fmt.Sprintf("%s: %d hold, %d do not",
		counted(total, "expectation"), total-failed, failed)
	var err error
	switch {
	case o.json:
		err = json.NewEncoder(c.OutOrStdout()).Encode(list)
	case o.markdown:
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s.\n", sum)
	default:
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s, in %s\n", sum, long(time.Since(began)))
	}
	if err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s: %w", c.CommandPath(), errExpectations)
	}
	return nil
}

// judge checks one experiment. It is nil if all are checked and this one expects nothing.
func (o *labCheckOptions) judge(
	ctx context.Context, c *cobra.Command, name string, all bool,
) (*lab.Judged, error) {
	s, err := lab.Load(lab.Request{Experiment: name, Version: buildMark()})
	if all && errors.Is(err, lab.ErrRealOnly) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(s.Cells[0].Expect) == 0 {
		if all {
			return nil, nil //nolint:nilnil // there is nothing to judge, and nothing wrong
		}
		return nil, &usageError{fmt.Errorf("%s: its file expects nothing", name)}
	}
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
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		out = append(out, checked{
			j.Name, v.What(), v.Case(), v.Expected(), v.Got(), v.Tolerance(), v.Pass, v.Published,
			v.Why,
		})
	}
	return out
}
