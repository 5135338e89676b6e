package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/sim/convergence"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

func labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "run experiments in virtual time",
		Long: "Run experiments in virtual time, with the same protocol code that nodes run.\n" +
			"The same seed gives the same result on every machine.",
		Example: "  node lab list\n" +
			"  node lab run tahoe-low\n" +
			"  node lab show tahoe-low > mine.yaml && node lab run mine.yaml",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(labListCommand(), labShowCommand(), labRunCommand(), labSubmitCommand(),
		labWatchCommand(), labCollectCommand(), labCheckCommand(), labPlotCommand(),
		labCompareCommand(), labMetricsCommand(), labTraceCommand(), labLogCommand(),
		labJudgeCommand())
	c.AddCommand(labProcessCommands()...)
	return c
}

// routing is the title of the RIP experiments, which have no experiment file.
const routing = "Convergence time of RIP (choose N)"

func labListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "list the experiments", Args: usageArgs(cobra.NoArgs),
		Long: "List the built-in experiments, with their names and what they show.",
		RunE: func(c *cobra.Command, _ []string) error {
			type entry struct {
				Name  string `json:"name"`
				Group string `json:"group"`
				About string `json:"about"`
			}
			var list []entry
			for _, g := range lab.PresetGroups() {
				for _, p := range g.Presets {
					list = append(list, entry{p.Name, g.Title, p.About})
				}
			}
			list = append(list, entry{casesName, casesTitle, casesAbout})
			for _, e := range convergence.Experiments() {
				list = append(list, entry{e.Name, routing, e.Text})
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(list)
			}
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			for i, e := range list {
				if i == 0 || e.Group != list[i-1].Group {
					fmt.Fprint(t, strings.Repeat("\n", min(i, 1)), e.Group, "\n")
				}
				fmt.Fprintf(t, "  %s\t%s\n", e.Name, e.About)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return c
}

func labShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show PRESET",
		Short: "print the file of an experiment",
		Long: "Print the file of an experiment, as a template for your own. `node lab run FILE`\n" +
			"runs it.",
		Example:           "  node lab show tahoe-low > mine.yaml",
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completing(lab.PresetNames, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, args []string) error {
			if p, ok := lab.FindPreset(args[0]); ok {
				_, err := c.OutOrStdout().Write(p.Text)
				return err
			}
			if strings.HasPrefix(args[0], "rip-") || args[0] == casesName {
				return misuse(c, fmt.Errorf("%q has no file: it is a built-in program", args[0]))
			}
			return misuse(c, fmt.Errorf("%q is not a preset%s; `node lab list` lists them", args[0],
				diagnostic.DidYouMean(args[0], lab.PresetNames())))
		},
	}
}

// labError converts an error of the laboratory: wrong usage and errors in files get status 2.
func labError(c *cobra.Command, name string, err error) error {
	if e, ok := errors.AsType[*starlark.Error](err); ok {
		where, _, _ := strings.Cut(err.Error(), ": "+e.Error())
		return &usageError{fmt.Errorf("%w\n  in %s", e, where)}
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w; free some space and repeat the command: it continues the run", err)
	}
	switch _, mistakes := errors.AsType[plan.Errors](err); {
	case err == nil:
		return nil
	case mistakes:
		return &usageError{err}
	case errors.Is(err, lab.ErrUnknown):
		return misuse(c, unknown(err, name, experimentNames()))
	case errors.Is(err, lab.ErrUsage):
		return misuse(c, err)
	}
	return err
}

func unknown(err error, name string, names []string) error {
	hint := diagnostic.DidYouMean(name, names)
	if family := lab.PresetFamily(name); len(family) > 0 {
		if n := len(family) - 4; n > 0 {
			family = append(family[:4:4], fmt.Sprintf("one of %d more", n))
		}
		hint = " (did you mean " + diagnostic.OneOf(family) + "?)"
	}
	return fmt.Errorf("%w%s; `node lab list` lists the presets", err, hint)
}

func experimentNames() []string {
	names := append(lab.PresetNames(), casesName)
	for _, e := range convergence.Experiments() {
		names = append(names, e.Name)
	}
	return names
}
