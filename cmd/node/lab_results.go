package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/batch"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func labCollectCommand() *cobra.Command {
	var o labRunOptions
	var from batch.Pod
	var piece int
	c := &cobra.Command{
		Use:     "collect DIR [flags] [-- ARGUMENT...]",
		Aliases: []string{"merge"},
		Short:   "merge the results of an experiment that ran in parts",
		Long: "Merge the results of `node lab submit` or `node lab run --index` in a\n" +
			"directory, and print the table. It runs nothing. If runs are missing, it prints\n" +
			"the available results, lists the cells of the missing runs, and fails.\n" +
			"\n" +
			"If the parts ran on Kubernetes, it first copies the results from the volume. On\n" +
			"a machine other than the one that ran `node lab submit`, give --claim the name\n" +
			"of the volume; DIR must have the same name as there. Arguments after -- are for\n" +
			"kubectl.",
		Example: "  node lab collect results\n" +
			"  node lab collect lab/tahoe-low --claim sweeps -- --namespace=lab",
		Args: func(c *cobra.Command, args []string) error {
			if at := c.ArgsLenAtDash(); at >= 0 {
				args = args[:at]
			}
			return usageArgs(cobra.ExactArgs(1))(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("archive") {
				return batch.Pack(c.OutOrStdout(), args[0], piece)
			}
			if err := from.Check(); err != nil {
				return misuse(c, err)
			}
			err := fetch(c, from, args[0], args[1:])
			if err == nil {
				err = o.collect(c, args[0])
			}
			return labError(c, args[0], err)
		},
	}
	resultFlags(c, &o)
	podFlags(c.Flags(), &from)
	c.Flags().IntVar(&piece, "archive", 0, "print piece `N` of the files as text, for a log")
	_ = c.Flags().MarkHidden("archive") // batch.Kubernetes uses this flag
	return c
}

// fetch copies the results of a directory from the volume of a cluster, if the results are on a
// volume and not on this machine.
func fetch(c *cobra.Command, from batch.Pod, dir string, extra []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	j, err := batch.Read(dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && from.Claim != "":
		j = &batch.Job{Name: filepath.Base(dir), Dir: dir}
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case j.Engine != kubernetes && from.Claim == "":
		return nil
	}
	r, err := lab.Read(dir)
	if err == nil && from.Claim == "" && len(r.MissingParts(j.Parts)) == 0 {
		return nil
	}
	setPod(j, from, extra)
	_, _ = fmt.Fprintf(c.ErrOrStderr(), "reading %s on the volume claim %s\n", filepath.Base(dir),
		j.Pod.Claim)
	ctx, stop := endBySignal(c.Context())
	defer stop()
	_, err = (&batch.Kubernetes{}).Gather(ctx, j)
	return err
}

// collect merges the results in a directory, draws them and prints them.
func (o *labRunOptions) collect(c *cobra.Command, dir string) error {
	r, err := lab.Merge(dir)
	if err != nil {
		return err
	}
	d := o.drawing()
	cells, runs := r.Missing()
	if runs == 0 {
		if d.Judged, err = r.Judge(nil); err != nil {
			return err
		}
	}
	if !o.plain {
		if _, err := r.Draw(d); err != nil {
			return err
		}
	}
	if err := o.print(c, r, taken{judged: d.Judged}); err != nil {
		return err
	}
	if runs > 0 {
		return fmt.Errorf("%s: %w: %s of %s", dir, lab.ErrIncomplete, counted(runs, "run"),
			cellNumbers(cells))
	}
	return nil
}

func labPlotCommand() *cobra.Command {
	var o labRunOptions
	c := &cobra.Command{
		Use:   "plot DIR",
		Short: "draw the figures of a directory of results again",
		Long: "Draw the figures of a directory of results again, each as .svg, .png, .pdf and\n" +
			".eps, and write the report. The command reads the files in the directory and\n" +
			"runs nothing. It prints the paths of the .svg files and of the report.",
		Example: "  node lab plot lab/tahoe-low\n" +
			"  node lab plot lab/cubic-reno-buffer --metrics utilisation,queue_p95",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return labError(c, args[0], o.plot(c, args[0]))
		},
	}
	resultFlags(c, &o)
	return c
}

func (o *labRunOptions) plot(c *cobra.Command, dir string) error {
	r, err := lab.Read(dir)
	if err != nil {
		return err
	}
	d := o.drawing()
	// Incomplete or old results have no verdicts, but can still be drawn.
	d.Judged, _ = r.Judge(nil)
	report, err := r.Draw(d)
	if err != nil {
		return err
	}
	plots, err := r.Plots()
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(
			map[string]any{"report": report, "plots": plots})
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), strings.Join(append(plots, report), "\n"))
	return err
}

func (o *labRunOptions) drawing() lab.DrawOptions {
	return lab.DrawOptions{Workers: runtime.GOMAXPROCS(0), Metrics: o.chosen(), Style: o.style}
}

func resultFlags(c *cobra.Command, o *labRunOptions) {
	c.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if err := checkMetrics(o.metrics); err != nil {
			return misuse(c, err)
		}
		return nil
	}
	c.Flags().StringSliceVar(&o.metrics, "metrics", nil,
		"show only the metrics `NAMES`, separated by commas")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	styleFlags(c, &o.style)
	if c.Name() == "collect" {
		c.Flags().BoolVar(&o.all, "all", false, "print a row for every flow")
	}
	if c.Name() != "plot" {
		latexFlag(c, o)
	}
}

func latexFlag(c *cobra.Command, o *labRunOptions) {
	c.Flags().BoolVar(&o.latex, "latex", false, "print only the table, as LaTeX")
	c.MarkFlagsMutuallyExclusive("latex", "json")
}

func cellNumbers(cells []int) string {
	const most = 12
	var names []string
	for _, c := range cells[:min(len(cells), most)] {
		names = append(names, fmt.Sprint(c))
	}
	if len(cells) > most {
		names = append(names, "…")
	}
	return "cells " + strings.Join(names, ", ")
}

func labCompareCommand() *cobra.Command {
	var o labRunOptions
	c := &cobra.Command{
		Use:   "compare DIR DIR",
		Short: "compare the results of two directories",
		Long: "Compare the second directory with the first and print the differences of all\n" +
			"metrics. If both have the same seed, trials with the same number have the same\n" +
			"random draws. The differences are then taken pair by pair, which usually makes\n" +
			"their confidence intervals narrower.",
		Example: "  node lab run two-tahoe --trials 10 -o a\n" +
			"  node lab run two-tahoe --trials 10 -o b --set flows.0.cc=cubic\n" +
			"  node lab compare a b",
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return labError(c, args[0], o.compare(c, args[0], args[1]))
		},
	}
	resultFlags(c, &o)
	return c
}

func (o *labRunOptions) compare(c *cobra.Command, first, second string) error {
	a, err := lab.Read(first)
	if err != nil {
		return err
	}
	b, err := lab.Read(second)
	if err != nil {
		return err
	}
	list, err := lab.Compare(a, b)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("one of the directories has no results: run the experiment there first")
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(list)
	}
	return lab.PrintComparison(c.OutOrStdout(), a, b, list,
		lab.TableOptions{Metrics: o.chosen(), LaTeX: o.latex})
}

func labMetricsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "metrics", Short: "list the metrics", Args: usageArgs(cobra.NoArgs),
		Long: "List the metrics that --metrics and the files of experiments can name.",
		RunE: func(c *cobra.Command, _ []string) error { return lab.Metrics(c.OutOrStdout()) },
	}
}

func checkMetrics(names []string) error {
	for _, m := range names {
		if _, known := result.Find(m); !known {
			return fmt.Errorf("--metrics: %q is not a metric%s; `node lab metrics` lists them", m,
				diagnostic.DidYouMean(m, result.Names()))
		}
	}
	return nil
}
