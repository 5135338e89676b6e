package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

func labTraceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "make, explain and convert mahimahi traces",
		Long: "Make, explain and convert traces, in mahimahi's format: text files with the\n" +
			"times at which a link may send. Each line is a time in milliseconds at which\n" +
			"one packet of 1504 bytes may leave: 1500 of IP and 4 that mahimahi adds. After\n" +
			"its last line a trace starts again.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(labTraceGenCommand(), labTraceInfoCommand(), labTraceConvertCommand())
	return c
}

type traceOptions struct {
	netem.TraceSpec
	rate, low, stallRate string
	out                  string
}

func labTraceGenCommand() *cobra.Command {
	var o traceOptions
	c := &cobra.Command{
		Use:   "gen const|poisson|onoff|cell",
		Short: "make a trace",
		Long: "Make a trace: `const` has a constant rate, `poisson` exponential gaps between\n" +
			"packets, `onoff` a rate that stops and resumes, and `cell` a rate that wanders\n" +
			"between --low and --rate, like a cellular link.",
		Example: "  node lab trace gen const --rate 12Mbit/s > 12.trace\n" +
			"  node lab trace gen poisson --rate 2.637Mbit/s --stall 5s --stall-rate 120kbit/s " +
			"-o p.trace",
		Args:      usageArgs(cobra.ExactArgs(1)),
		ValidArgs: netem.TraceKinds,
		RunE: func(c *cobra.Command, args []string) error {
			o.Kind = args[0]
			t, err := o.generate()
			if err != nil {
				return misuse(c, err)
			}
			return writeOut(c, o.out, t.Format())
		},
	}
	f := c.Flags()
	f.StringVar(&o.rate, "rate", "", "constant or mean `RATE`, such as 2.64Mbit/s; required")
	f.StringVar(&o.low, "low", "", "for cell: never fall below `RATE` (default: a tenth of --rate)")
	f.DurationVar(&o.Length, "length", 60*time.Second, "make the trace `DURATION` long")
	f.DurationVar(&o.On, "on", time.Second, "for onoff: send for `DURATION`")
	f.DurationVar(&o.Off, "off", time.Second, "for onoff: pause for `DURATION`")
	f.DurationVar(&o.Stay, "stay", 2*time.Second, "for cell: keep a rate for `DURATION` on average")
	f.DurationVar(&o.Stall, "stall", 0,
		"begin with a stall of `DURATION`, which counts toward --length")
	f.StringVar(&o.stallRate, "stall-rate", "",
		"let the link send at `RATE` during the stall (default: 0)")
	f.Uint64Var(&o.Seed, "seed", 1, "seed all random draws with `SEED`")
	f.StringVarP(&o.out, "out", "o", "", "write to `FILE` (default: standard output)")
	return c
}

func (o *traceOptions) generate() (netem.Trace, error) {
	if o.rate == "" {
		return nil, errors.New("--rate is missing: must be a rate such as 2.64Mbit/s")
	}
	for _, r := range []struct {
		flag, text string
		to         *int64
	}{
		{"rate", o.rate, &o.Rate},
		{"low", o.low, &o.Low},
		{"stall-rate", o.stallRate, &o.StallRate},
	} {
		if r.text == "" {
			continue
		}
		var err error
		if *r.to, err = bitsPerSecond(r.flag, r.text); err != nil {
			return nil, err
		}
	}
	return o.Make()
}

func bitsPerSecond(flag, text string) (int64, error) {
	v, unit, ok := formula.Number(text)
	if !ok || unit != formula.Rate || v < 1 || v > netem.MaxTraceRate {
		return 0, fmt.Errorf("--%s %s: must be a rate such as 2.64Mbit/s, from 1bit/s to %dGbit/s",
			flag, text, netem.MaxTraceRate/1_000_000_000)
	}
	return int64(v), nil
}

func writeOut(c *cobra.Command, path string, text []byte) error {
	if path == "" {
		_, err := c.OutOrStdout().Write(text)
		return err
	}
	return result.WriteFile(path, text)
}

func labTraceInfoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "info FILE", Short: "summarize a trace",
		Long:    "Summarize a trace: its length, rates and gaps.",
		Example: "  node lab trace info 2.64mbps-poisson.trace",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := readTrace(c, args[0])
			if err != nil {
				return err
			}
			return printTrace(c.OutOrStdout(), t.Info())
		},
	}
}

func readTrace(c *cobra.Command, path string) (netem.Trace, error) {
	text, err := readAll(c, path)
	if err != nil {
		return nil, err
	}
	t, warnings, err := netem.ParseTrace(path, text)
	for _, w := range warnings {
		c.PrintErrln("note: " + w)
	}
	if err != nil {
		return nil, &usageError{err}
	}
	return t, nil
}

func readAll(c *cobra.Command, path string) ([]byte, error) {
	var text []byte
	var err error
	if path == "-" {
		text, err = files.All("stdin", c.InOrStdin(), files.MaxData)
	} else {
		text, err = files.Text(path, files.MaxData)
	}
	if err != nil {
		return nil, &usageError{err}
	}
	return text, nil
}

func printTrace(w io.Writer, i netem.TraceInfo) error {
	rate := func(v float64) string { return lab.Quantity(v, formula.Rate) }
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "opportunities\t%d\n", i.Lines)
	fmt.Fprintf(t, "repeats after\t%v\n", i.Length)
	fmt.Fprintf(t, "mean\t%s\tpackets of 1500 bytes\n", rate(i.Mean))
	fmt.Fprintf(t, "with mahimahi's overhead\t%s\t1504 bytes an opportunity\n", rate(i.Bytes))
	fmt.Fprintf(t, "first at\t%v\n", i.First)
	fmt.Fprintf(t, "longest gap\t%v\n", i.Gap)
	fmt.Fprintf(t, "maximum in a millisecond\t%d\n", i.Burst)
	fmt.Fprintf(t, "rate of each %v\t%s to %s\t5 %%: %s, median %s, 95 %%: %s\n", i.Window,
		rate(i.Rates[0]), rate(i.Rates[4]), rate(i.Rates[1]), rate(i.Rates[2]), rate(i.Rates[3]))
	return t.Flush()
}

func labTraceConvertCommand() *cobra.Command {
	var out string
	var window time.Duration
	c := &cobra.Command{
		Use:   "convert FILE",
		Short: "convert rates over time into a trace, or a trace into rates",
		Long: "Convert rates into a trace, or a trace into rates. Each line of a file of rates\n" +
			"has a time in seconds and the rate in Mbit/s from then on; the time of the last\n" +
			"line is the end of the trace. From a trace, the command computes the mean rate\n" +
			"in each --window. A file with two columns is read as rates, and a file with one\n" +
			"column as a trace.",
		Example: "  node lab trace convert bandwidth.txt > bandwidth.trace\n" +
			"  node lab trace convert --window 500ms 2.64mbps-poisson.trace",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if window < time.Millisecond {
				return misuse(c, fmt.Errorf("--window %v: must be 1ms or more", window))
			}
			text, err := readAll(c, args[0])
			if err != nil {
				return err
			}
			made, err := convertTrace(args[0], text, window)
			if err != nil {
				return &usageError{err}
			}
			return writeOut(c, out, made)
		},
	}
	c.Flags().DurationVar(&window, "window", time.Second,
		"for a trace: average rates over `DURATION`")
	c.Flags().StringVarP(&out, "out", "o", "", "write to `FILE` (default: standard output)")
	return c
}

// convertTrace converts rates to a trace, or a trace to rates.
func convertTrace(name string, text []byte, window time.Duration) ([]byte, error) {
	if !twoColumns(text) {
		t, _, err := netem.ParseTrace(name, text)
		if err != nil {
			return nil, err
		}
		return t.FormatRates(window), nil
	}
	rates, err := netem.ParseRates(name, text)
	if err != nil {
		return nil, err
	}
	t, err := rates.Trace()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t.Format(), nil
}

// twoColumns reports whether the first line that is not blank or a comment has more than one word.
func twoColumns(text []byte) bool {
	for line := range bytes.Lines(text) {
		words := strings.FieldsFunc(string(line), func(r rune) bool {
			return strings.ContainsRune(" \t,\r\n", r)
		})
		if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			return len(words) > 1
		}
	}
	return false
}
