package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func labLogCommand() *cobra.Command {
	var dir string
	var style figure.Style
	c := &cobra.Command{
		Use:   "log FILE",
		Short: "summarize and draw a log of mahimahi's mm-link",
		Long: "Summarize a log of mahimahi's mm-link, or a link's log in a folder of results:\n" +
			"capacity, throughput, delays and drops. --out draws figures. The delays are those\n" +
			"of the link's queue only, because such a log does not contain the delay of\n" +
			"mm-delay. mahimahi's own mm-throughput-graph prints a similar summary, but stops\n" +
			"at the first drop.",
		Example: "  node lab log lab/tahoe-low/links/0-down.log\n" +
			"  node lab log uplink.log -o figures",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := readLog(c, args[0])
			if err != nil {
				return err
			}
			d := l.Digest()
			if err := printLog(c.OutOrStdout(), l.Name, &d); err != nil || dir == "" {
				return err
			}
			return drawLog(c, dir, filepath.Base(args[0]), l, &d, style)
		},
	}
	c.Flags().StringVarP(&dir, "out", "o", "", "draw figures into `DIR`")
	styleFlags(c, &style)
	return c
}

func readLog(c *cobra.Command, path string) (*result.LinkRecord, error) {
	var in io.Reader = c.InOrStdin()
	if path != "-" {
		f, err := files.Input(path)
		if err != nil {
			return nil, &usageError{err}
		}
		defer f.Close()
		in = bufio.NewReader(f)
	}
	l, err := result.ReadLog(path, in)
	if err != nil {
		return nil, &usageError{err}
	}
	return l, nil
}

func printLog(w io.Writer, name string, d *result.Digest) error {
	rate := func(v float64) string { return lab.Quantity(v, formula.Rate) }
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s link\t%v\n", name, d.Length.Round(time.Millisecond))
	if d.Capacity > 0 {
		fmt.Fprintf(t, "capacity\t%s\n", rate(d.Capacity))
		fmt.Fprintf(t, "throughput\t%s\t%.1f %% of it\n", rate(d.Egress), 100*d.Egress/d.Capacity)
	} else {
		fmt.Fprintf(t, "throughput\t%s\n", rate(d.Egress))
	}
	fmt.Fprintf(t, "arrived\t%s\t%d packets\n", rate(d.Ingress), d.Arrived)
	fmt.Fprintf(t, "left\t%d packets\n", d.Departed)
	fmt.Fprintf(t, "dropped\t%d packets\t%d bytes\n", d.Dropped, d.DroppedBytes)
	fmt.Fprintf(t, "queueing delay\t%v\t95 %%: %v, 99 %%: %v, maximum %v\n", d.Wait50, d.Wait95,
		d.Wait99, d.WaitMax)
	fmt.Fprintf(t, "signal delay, 95 %%\t%v\n", d.Signal95)
	return t.Flush()
}

// flowsOf returns a log's flows by number. If the log has no numbers, all packets are one flow.
func flowsOf(l *result.LinkRecord) []result.FlowRecord {
	const most = 1000
	last := 0
	for i := range l.Events {
		e := &l.Events[i]
		if e.Kind != result.Opportunity {
			e.Flow = min(max(0, e.Flow), most)
			last = max(last, e.Flow)
		}
	}
	flows := make([]result.FlowRecord, last+1)
	for i := range flows {
		flows[i].Name, flows[i].Upward = fmt.Sprintf("flow %d", i), l.Name == "up"
	}
	if last == 0 {
		flows[0].Name = "all packets"
	}
	return flows
}

func drawLog(
	c *cobra.Command, dir, name string, l *result.LinkRecord, d *result.Digest, style figure.Style,
) error {
	plots := figure.Plots(&result.Record{
		Title: name, Duration: l.Events[len(l.Events)-1].At, Rate: d.Capacity,
		Flows: flowsOf(l), Links: []result.LinkRecord{*l},
	})
	if len(plots) == 0 {
		return fmt.Errorf("%s: no figure can be drawn from it", name)
	}
	for i := range plots {
		if err := plots[i].WriteFiles(dir, plots[i].Name, style); err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), filepath.Join(dir, plots[i].Name+".svg"))
	}
	return nil
}
