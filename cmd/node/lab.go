package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/sim/convergence"
	"github.com/tidepool-net/tidepool/internal/spell"
)

func labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "experiments in virtual time",
		Long: "Experiments with the code that runs on the wire, in virtual time: the same\n" +
			"seed gives the same result on every machine.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(labListCommand(), labRunCommand())
	return c
}

func labListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list the experiments",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, e := range convergence.Experiments() {
				fmt.Fprintf(t, "%s\t%s\n", e.Name, e.Text)
			}
			return t.Flush()
		},
	}
}

func labRunCommand() *cobra.Command {
	var (
		o      convergence.Options
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "run EXPERIMENT",
		Short: "run an experiment and print what came out",
		Long: "Run an experiment and print what came out: how long a network of routers takes\n" +
			"to have the right routes, and how many messages, after it starts, a wire is cut\n" +
			"or flaps, and whether routes went in circles meanwhile.\n\n" +
			"`node lab list` tells the names. The number in a name may be another.",
		Example: "  node lab run rip-ring-29\n" +
			"  node lab run rip-random-1000 --dialect rip2 --seed 7",
		Args: usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: func(*cobra.Command, []string, string) (
			[]string, cobra.ShellCompDirective,
		) {
			return experimentNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			out, err := convergence.Run(args[0], o)
			switch {
			case errors.Is(err, convergence.ErrCase):
				return misuse(c, fmt.Errorf("%w%s; `node lab list` lists them",
					err, spell.DidYouMean(args[0], experimentNames())))
			case errors.Is(err, convergence.ErrDialect):
				return misuse(c, err)
			case err != nil:
				return fmt.Errorf("lab run: %w", err)
			case asJSON:
				return json.NewEncoder(c.OutOrStdout()).Encode(out)
			}
			return out.Print(c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&o.Dialect, "dialect", "rip", "of RIP: rip, the course's, or rip2")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "decides the network and all that is random")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object; times are nanoseconds")
	return c
}

func experimentNames() []string {
	var names []string
	for _, e := range convergence.Experiments() {
		names = append(names, e.Name)
	}
	return names
}
