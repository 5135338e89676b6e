package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/hub"
)

type hubOptions struct {
	students, network string
	cfg               hub.Config
}

func hubCommand() *cobra.Command {
	var o hubOptions
	c := &cobra.Command{
		Use:   "hub",
		Short: "run a router that joins the nodes of a class",
		Long: "Run a router to which students connect their nodes over UDP. Each student has a\n" +
			"token, a subnet, and an .lnx file that works for nodes in any language. A page\n" +
			"shows which nodes reach each other, their TCP transfers, and the last report of\n" +
			"`node examine` for each student's node. The file of --students has one name per\n" +
			"line, optionally followed by a token of your choice. The hub prints the\n" +
			"teacher's token to standard error (docs/examiner.md).",
		Example: "  node hub --students class.txt\n" +
			"  node hub --students class.txt --listen-udp 0.0.0.0:5300 --http 0.0.0.0:8080 \\\n" +
			"    --public hub.example.edu:5300\n" +
			"  node hub lnx ada > ada.lnx",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.StringVar(&o.cfg.ListenUDP, "listen-udp", "127.0.0.1:5300", "receive packets at `HOST:PORT`")
	f.StringVar(&o.cfg.HTTP, "http", "127.0.0.1:8080", "serve the page at `HOST:PORT`")
	f.StringVar(&o.students, "students", "", "read the students from `FILE`")
	f.StringVar(&o.cfg.Public, "public", "",
		"write `HOST:PORT` into the students' files, instead of the address in --listen-udp")
	f.StringVar(&o.network, "network", "10.77.0.0/16", "take the students' subnets from `PREFIX`")
	f.IntVar(&o.cfg.Rate, "rate", 5000, "drop packets above `N` a second from each student")
	f.IntVar(&o.cfg.Most, "most", 100,
		fmt.Sprintf("allow at most `N` students, up to %d", hub.MaxStudents))
	f.BoolVar(&o.cfg.Private, "private", false, "show the page only to clients with a token")
	c.PersistentFlags().StringVar(&o.cfg.State, "state", "hub.json",
		"keep tokens, addresses and counters in `FILE`")
	c.AddCommand(o.lnxCommand())
	return c
}

func (o *hubOptions) lnxCommand() *cobra.Command {
	var form hub.FileForm
	c := &cobra.Command{
		Use: "lnx NAME", Short: "print the .lnx file of a student",
		Args: usageArgs(cobra.ExactArgs(1)),
		Long: "Print the .lnx file with which the student NAME starts a node on the hub's network.",
		RunE: func(c *cobra.Command, args []string) error {
			text, err := hub.ReadFile(o.cfg.State, args[0], form)
			if err == nil {
				_, err = io.WriteString(c.OutOrStdout(), text)
			}
			return hubError(c, err)
		},
	}
	c.Flags().StringVar(&form.Grammar, "grammar", "new", "`GRAMMAR` of the file: new, 2018 or 2013")
	c.Flags().Uint16Var(&form.Port, "port", 0,
		"UDP `PORT` of the node (default 5000 + N for the subnet 10.77.N.0/24)")
	return c
}

func (o *hubOptions) configure() (err error) {
	if o.cfg.Network, err = netip.ParsePrefix(o.network); err != nil {
		return fmt.Errorf("--network %q: must be a prefix such as 10.77.0.0/16", o.network)
	}
	if o.students != "" {
		o.cfg.Students, err = hub.ReadStudents(o.students)
	}
	return err
}

func (o *hubOptions) run(c *cobra.Command) error {
	if err := o.configure(); err != nil {
		return &usageError{err}
	}
	ctx, stop := endBySignal(c.Context())
	defer stop()
	if err := hub.Run(ctx, o.cfg, c.OutOrStdout(), c.ErrOrStderr()); err != nil {
		return hubError(c, err)
	}
	return printedError{context.Cause(ctx)}
}

// hubError converts the hub's error about a bad value to wrong usage of the flag.
func hubError(c *cobra.Command, err error) error {
	if bad, ok := errors.AsType[hub.InvalidError](err); ok {
		return misuse(c, fmt.Errorf("--%w", bad))
	}
	return err
}
