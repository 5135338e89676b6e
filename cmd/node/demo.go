package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/repl"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// demoBytes is the size of the largest file in founding document 001's measurements.
const demoBytes = 92_339_236

type demoOptions struct {
	style   figure.Style
	bytes   int64
	loss    float64 // packet loss, in percent
	json    bool
	out     string
	seed    uint64
	snaplen int
	quiet   bool
	keep    bool
	direct  bool
	bare    bool
	cc      string // congestion control of the sender; allAlgorithms: one transfer with each
	family  string // version of IP
}

func demoCommand() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "send a file over three nodes on this machine, with loss",
		Long: "Start three nodes, A - B - C, as processes that are linked over the loopback. B\n" +
			"drops a share of the packets that it forwards. Send a generated file from C to A\n" +
			"and compare the SHA-256 of both ends. The demo writes a capture of each node, a\n" +
			"figure and a summary into the folder of --out.\n\n" +
			"--cc chooses the congestion control of the sender. --cc all sends the file\n" +
			"with reno, cubic and bbr in turn, prints the throughput of each with an\n" +
			"explanation, and draws one figure of all three.",
		Example: "  node demo\n  node demo --cc all\n  node demo --cc bbr --loss 10\n" +
			"  node demo --family 6",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if o.direct && !c.Flags().Changed("loss") {
				o.loss = 0
			}
			if err := o.validate(); err != nil {
				return misuse(c, err)
			}
			return o.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.AddCommand(arrivalsCommand())
	f := c.Flags()
	f.Int64Var(&o.bytes, "bytes", demoBytes, "make the file `N` bytes long")
	f.Float64Var(&o.loss, "loss", 2, "drop `PERCENT` of the packets at B, in each direction")
	f.StringVar(&o.cc, "cc", "cubic", "use congestion control `NAME` at the sender; all: compare "+
		strings.Join(comparedAlgorithms, ", "))
	f.StringVar(&o.family, "family", "4", "use IP `VERSION` 4 or 6")
	f.BoolVar(&o.json, "json", false, "print one JSON object and nothing else")
	f.StringVar(&o.out, "out", "demo-out", "write captures, figures and the summary into `FOLDER`")
	f.Uint64Var(&o.seed, "seed", 1, "`SEED` for the file's content and the packet drops")
	f.IntVar(&o.snaplen, "pcap-snaplen", 128, "capture `N` bytes of each packet; 0: all")
	f.BoolVar(&o.quiet, "quiet", false, "print only the result and no progress")
	f.BoolVar(&o.keep, "keep", false, "keep both copies of the file")
	f.BoolVar(&o.direct, "direct", false, "use no router: join A and C by one link, without loss")
	f.BoolVar(&o.bare, "bare", false, "write no captures and no figure, for measurements")
	repl.Choose(c, "family", "4", "6")
	repl.Limit(c, 0, repl.Unlimited, "bytes")
	repl.Limit(c, 0, math.MaxUint16, "pcap-snaplen")
	styleFlags(c, &o.style)
	return c
}

func (o *demoOptions) validate() error {
	switch {
	case math.IsNaN(o.loss) || o.loss < 0 || o.loss >= 100:
		return fmt.Errorf("--loss %v: must be a percentage from 0 to below 100", o.loss)
	case o.direct && o.loss > 0:
		return fmt.Errorf("--loss %v: must be 0 with --direct, which has no router", o.loss)
	case o.cc != allAlgorithms && !slices.Contains(tcp.Algorithms(), o.cc):
		return fmt.Errorf("--cc %q is not a congestion control%s: must be all or one of %s", o.cc,
			diagnostic.DidYouMean(o.cc, tcp.Algorithms()), strings.Join(tcp.Algorithms(), ", "))
	case o.out == "":
		return errors.New("--out is empty: must be a directory")
	}
	return nil
}

// run runs the demo. No child process survives it.
func (o *demoOptions) run(ctx context.Context, out, status io.Writer) error {
	ctx, stop := endBySignal(ctx)
	defer stop()
	d := demo{demoOptions: *o, stdout: out, status: status}
	if o.cc == allAlgorithms {
		return d.compareAlgorithms(ctx)
	}
	result, err := d.play(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx) // replaces the errors of the stopped nodes
	}
	if err != nil {
		return err
	}
	if o.json {
		if err := json.NewEncoder(out).Encode(result); err != nil {
			return err
		}
	} else {
		result.print(out)
	}
	if !result.Match {
		return errDiffers
	}
	return nil
}

var errDiffers = errors.New("the received file differs from the sent file")

type demo struct {
	demoOptions
	stdout, status io.Writer
	dir            string // absolute path of the directory where the nodes run
	above          string // directory of the comparison that contains this transfer; may be empty
	samples        []figure.Sample
}

// These are the names of the files in the demo's directory.
const (
	demoSent     = "sent.bin"
	demoReceived = "received.bin"
	demoPart     = demoReceived + ".part" // the data received so far
	demoProbe    = "probe.csv"
	demoSummary  = "summary.json"
	demoFigure   = "figure" // figure.FileNames adds the suffixes
)

// play starts the network, transfers the file, and returns the result.
func (d *demo) play(ctx context.Context) (result demoResult, err error) {
	if d.dir, err = filepath.Abs(d.out); err != nil {
		return result, err
	}
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return result, err
	}
	d.clear()
	defer func() { d.removeFiles(ctx, err == nil && !result.Match) }()
	d.say("generating %s random bytes (seed %d)", grouped(d.bytes), d.seed)
	made, err := d.generate(ctx)
	if err != nil {
		return result, fmt.Errorf("generating the file: %w", err)
	}
	net, err := d.startNodes(ctx)
	if err != nil {
		return result, err
	}
	defer net.end()
	moved, err := d.move(ctx, net)
	if err != nil {
		return result, err
	}
	if err := net.leave(ctx); err != nil { // closes the capture and probe files
		return result, err
	}
	result = d.summarize(moved)
	if err := d.compare(&result, made, moved); err != nil {
		return result, err
	}
	return result, d.record(&result, moved)
}

// say prints progress, unless the user wants only the result.
func (d *demo) say(format string, args ...any) {
	if d.quiet || d.json || d.above != "" {
		return
	}
	// If this write fails, there is nowhere to report it.
	_, _ = fmt.Fprintf(d.stdout, format+"\n", args...)
}

func machine() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		runtime.Version())
}
