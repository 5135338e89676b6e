package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/examine/fuzz"
	"github.com/tidepool-net/tidepool/internal/repl"
)

var errViolates = errors.New("this program's TCP violates the model of RFC 9293")

type fuzzOptions struct {
	search   fuzz.Search
	profiles []string
	command  string
	tun      bool
	out      string
}

func examineFuzzCommand() *cobra.Command {
	var o fuzzOptions
	o.search.Stack = fuzz.Engine{}
	c := &cobra.Command{
		Use:   "fuzz",
		Short: "compare TCP stacks on random sequences of events",
		Long: "Generate random sequences of calls, segments and pauses, and compare the answers\n" +
			"of this program's TCP with a model of RFC 9293. With --profile or --tun, also\n" +
			"run some of the sequences on another stack. For each kind of difference, the\n" +
			"command prints the shortest sequence that shows it. To compare several stacks,\n" +
			"repeat --profile with YAML files, each of which names its own command. The\n" +
			"exit status is 1 if this program's TCP does something that the model does not\n" +
			"allow.",
		Example: "  node examine fuzz --sequences 1000000 --jobs 4\n" +
			"  node examine fuzz --profile course-2024 --command './vhost --config {lnx}'\n" +
			"  sudo unshare --net node examine fuzz --tun --sequences 20000 --out differences\n" +
			"  node examine --checks differences",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.IntVar(&o.search.Sequences, "sequences", 100_000, "try `N` sequences")
	f.Uint64Var(&o.search.Seed, "seed", 1, "`SEED` of the random sequences")
	f.IntVarP(&o.search.Workers, "jobs", "j", 1, "test `N` sequences at a time")
	f.StringArrayVar(&o.profiles, "profile", nil,
		"compare with the node of the profile `NAME` or of a YAML file; may be repeated")
	f.StringVar(&o.command, "command", "",
		"start the node of --profile with `COMMAND`; {lnx} stands for its .lnx file")
	f.BoolVar(&o.tun, "tun", false, "compare with this machine's kernel through TUN devices")
	f.StringVarP(&o.out, "out", "o", "", "write a check file for each difference to `FOLDER`")
	repl.Limit(c, 1, repl.Unlimited, "sequences", "jobs")
	return c
}

func (o *fuzzOptions) run(c *cobra.Command) error {
	others, err := o.others()
	if err != nil {
		return misuse(c, err)
	}
	const rare = 400 // GC percentage; nearly all memory is garbage after each sequence
	debug.SetGCPercent(rare)
	began := time.Now()
	found, err := o.search.Run(c.Context())
	if err != nil {
		return err
	}
	out := c.OutOrStdout()
	took := time.Since(began).Seconds()
	fmt.Fprintf(out, "%d sequences with %d events in %.1f s; %d combinations of state, event and "+
		"answer in %d states\n", found.Sequences, found.Events, took, found.Covered, found.States)
	for _, d := range found.Wrong {
		fmt.Fprintf(out, "\nin %s, %s:\n  %s\n", d.State, d.Wrong, strings.Join(d.Lines(), "\n  "))
	}
	if len(others) > 0 {
		if err := o.compare(c, out, found, others); err != nil {
			return err
		}
	}
	if len(found.Wrong) > 0 {
		return errViolates
	}
	return nil
}

// others returns the stacks to compare this one with.
func (o *fuzzOptions) others() (list []fuzz.Stack, err error) {
	if o.command != "" && len(o.profiles) != 1 {
		return nil, fmt.Errorf("--command needs one --profile that says how to talk to the node, " +
			"such as --profile course-2024")
	}
	for _, p := range o.profiles {
		if p == "self" {
			return nil, fmt.Errorf("this program's TCP is always compared: remove --profile self")
		}
		subject, _, err := (&examineOptions{profile: p, command: o.command}).subject()
		if err != nil {
			return nil, err
		}
		list = append(list, fuzz.Subject{Subject: subject, Settle: fuzz.DelayedACK})
	}
	if o.tun {
		kernel, err := examine.Kernel()
		if err != nil {
			return nil, err
		}
		list = append(list, fuzz.Subject{Subject: kernel})
	}
	return list, nil
}

// compare also executes the corpus on other stacks.
func (o *fuzzOptions) compare(
	c *cobra.Command, out io.Writer, found *fuzz.Found, others []fuzz.Stack,
) error {
	const workers = 128
	stacks := append([]fuzz.Stack{o.search.Stack}, others...)
	table, err := fuzz.Compare(c.Context(), stacks, found.Corpus, workers)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\n%d sequences on each stack\n\n%s", table.Sequences,
		table.Markdown()); err != nil || o.out == "" {
		return err
	}
	return table.WriteChecks(o.out)
}
