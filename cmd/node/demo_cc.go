package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
)

// allAlgorithms is the value of --cc that compares comparedAlgorithms.
const allAlgorithms = "all"

var comparedAlgorithms = []string{"reno", "cubic", "bbr"}

// demoComparison is the output of --cc all as JSON, and its summary.json.
type demoComparison struct {
	Runs []demoResult `json:"runs"`

	folder string
	loss   string
	routed bool
}

// compareAlgorithms transfers the file once with each algorithm. Every transfer uses the same file
// and seed, but has new nodes and its own directory.
func (d *demo) compareAlgorithms(ctx context.Context) (err error) {
	if d.dir, err = filepath.Abs(d.out); err != nil {
		return err
	}
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return err
	}
	d.clear()
	c := demoComparison{folder: d.out, routed: !d.direct}
	c.loss = (&demoResult{LossPercent: d.loss}).lossText()
	d.say("sending %s bytes %s, once with each of %s\n", grouped(d.bytes), c.path(),
		strings.Join(comparedAlgorithms, ", "))
	f := figure.Transfers{}
	for _, name := range comparedAlgorithms {
		one := demo{demoOptions: d.demoOptions, stdout: d.stdout, status: d.status, above: d.dir}
		one.cc, one.out = name, filepath.Join(d.out, name)
		result, err := one.play(ctx)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.Runs = append(c.Runs, result)
		f.List = append(f.List, figure.Transfer{Name: name, Samples: one.samples})
		d.say("%-6s %6.2f s  %7.1f MB/s", name, result.Seconds, result.MBPerS)
	}
	if err := d.recordComparison(&c, f); err != nil {
		return err
	}
	if d.json {
		err = json.NewEncoder(d.stdout).Encode(c)
	} else {
		_, err = io.WriteString(d.stdout, c.text())
	}
	if err != nil {
		return err
	}
	if !c.match() {
		return errDiffers
	}
	return nil
}

func (d *demo) recordComparison(c *demoComparison, f figure.Transfers) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	err = files.Overwrite(d.path(demoSummary), append(text, '\n'), 0o644)
	if err != nil || d.bare {
		return err
	}
	first := &c.Runs[0]
	f.Title = fmt.Sprintf("%s bytes %s", grouped(first.Bytes), c.path())
	f.Bound = first.BoundMBPerS * 1e6
	f.Note = "Without loss, only the processor limits the throughput."
	if f.Bound > 0 {
		f.Note = fmt.Sprintf("The loss bound is the throughput of a sender that halves its "+
			"window at each loss: 1.31/√p · MSS/RTT = %.1f MB/s at %s's RTT.",
			first.BoundMBPerS, first.Congestion)
	}
	plot, err := f.Plot()
	if errors.Is(err, figure.ErrNoSamples) { // the file is empty
		d.remove(figure.FileNames(demoFigure)...)
		return nil
	}
	if err != nil {
		return err
	}
	return plot.WriteFiles(d.dir, demoFigure, d.style)
}

func (c *demoComparison) path() string {
	if !c.routed {
		return "from C to A over one link"
	}
	return fmt.Sprintf("from C to A through B, which drops %s in each direction", c.loss)
}

func (c *demoComparison) match() bool {
	for i := range c.Runs {
		if !c.Runs[i].Match {
			return false
		}
	}
	return true
}

// text formats the comparison as a table, and explains why the numbers differ.
func (c *demoComparison) text() string {
	var b strings.Builder
	b.WriteString("\n")
	row := func(name string, value func(r *demoResult) string) {
		fmt.Fprintf(&b, "  %-26s", name)
		for i := range c.Runs {
			fmt.Fprintf(&b, "%10s", value(&c.Runs[i]))
		}
		b.WriteString("\n")
	}
	number := func(name, format string, of func(r *demoResult) float64) {
		row(name, func(r *demoResult) string { return fmt.Sprintf(format, of(r)) })
	}
	count := func(name string, of func(r *demoResult) uint64) {
		row(name, func(r *demoResult) string { return grouped(int64(of(r))) })
	}
	row("", func(r *demoResult) string { return r.Congestion })
	number("throughput, MB/s", "%.1f", func(r *demoResult) float64 { return r.MBPerS })
	number("time, s", "%.2f", func(r *demoResult) float64 { return r.Seconds })
	number("mean RTT, ms", "%.2f", func(r *demoResult) float64 { return r.RTTms })
	if c.Runs[0].BoundMBPerS > 0 {
		number("loss bound at that RTT", "%.1f",
			func(r *demoResult) float64 { return r.BoundMBPerS })
		number("throughput / loss bound", "%.2f",
			func(r *demoResult) float64 { return r.OfBound })
	}
	count("segments retransmitted", func(r *demoResult) uint64 { return r.Retransmits })
	count("retransmission timeouts", func(r *demoResult) uint64 { return r.RTOs })
	b.WriteString("\n" + c.reasons() + "\n")
	fmt.Fprintf(&b, "files in %s: %s\n\n", c.folder, strings.Join(left(c.folder), " "))
	worst := &c.Runs[0]
	for i := range c.Runs {
		if !c.Runs[i].Match {
			worst = &c.Runs[i]
		}
	}
	b.WriteString(worst.verdict())
	return b.String()
}

func (c *demoComparison) reasons() string {
	if c.Runs[0].BoundMBPerS == 0 {
		return "Without loss no algorithm reduces its window. The links have no\n" +
			"rate limit, so this machine's processor is the limit of all three.\n"
	}
	mss := c.Runs[0].MSS
	return fmt.Sprintf(`Why: the links have no rate limit, so only losses and this machine's
processor limit a transfer.
  reno   halves its window at each loss. With a share p of all packets lost, it gets at
         most 1.31/sqrt(p) * MSS/RTT: the loss bound. Here p is %s, MSS %d bytes.
  cubic  reduces its window to 70 %% at each loss. After that it grows as slowly as Reno
         does when the RTT is this short (RFC 9438 §4.3), so the same bound holds.
  bbr    measures the rate at which its data arrives and sends at that rate. One lost
         packet does not change that rate, so the loss bound does not apply to it. Its
         larger window also fills queues, so its RTT is longer.
`, c.loss, mss)
}
