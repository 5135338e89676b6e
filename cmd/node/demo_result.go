package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lab/figure"
)

// demoResult is the content of summary.json and of the output with --json.
type demoResult struct {
	Bytes       int64   `json:"bytes"`
	LossPercent float64 `json:"loss_percent"`
	// Seconds is the sender's time from opening the connection to the last acknowledgment.
	Seconds float64 `json:"seconds"`
	MBPerS  float64 `json:"mb_per_s"` // throughput; 1 MB is 1,000,000 bytes
	Match   bool    `json:"sha256_match"`
	SHA256  string  `json:"sha256"`
	Routed  bool    `json:"routed"` // whether the network has a router
	// Congestion is the sender's congestion control.
	Congestion string `json:"congestion"`

	// BoundMBPerS is 1.31/sqrt(p)*MSS/RTT with the mean RTT of the transfer; 0 without loss.
	BoundMBPerS float64 `json:"bound_mb_per_s"`
	OfBound     float64 `json:"of_bound"`
	RTTms       float64 `json:"rtt_ms"`
	MinRTTms    float64 `json:"min_rtt_ms"`
	MSS         int     `json:"mss"`

	Retransmits  uint64 `json:"retransmits"`
	RTOs         uint64 `json:"rtos"`
	TailProbes   uint64 `json:"tail_probes"`
	WindowProbes uint64 `json:"window_probes"`

	// These are B's counters: the packets that B received in both directions, dropped on purpose,
	// and dropped for other reasons.
	RouterPackets uint64 `json:"router_packets"`
	RouterLost    uint64 `json:"router_lost"`
	RouterDropped uint64 `json:"router_dropped"`

	RoutesAfterS float64 `json:"routes_after_s"`
	Seed         uint64  `json:"seed"`
	Machine      string  `json:"machine"`
	Folder       string  `json:"folder"`
}

// lossy is the drop reason of a router's intended losses.
const lossy = "lossy forward"

// lossBound returns the throughput in MB/s of a sender that halves its window at each loss. The
// formula is from Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion
// avoidance algorithm" (1997), with the constant for receivers that acknowledge every segment.
func lossBound(lossPercent float64, mss int, rtt time.Duration) float64 {
	if lossPercent <= 0 || rtt <= 0 {
		return 0
	}
	return 1.31 / math.Sqrt(lossPercent/100) * float64(mss) / rtt.Seconds() / 1e6
}

// summarize computes the result from the reports of the two ends and the router.
func (d *demo) summarize(moved demoMoved) demoResult {
	r := demoResult{
		Bytes: moved.received.Bytes, LossPercent: d.loss, Routed: !d.direct, Congestion: d.cc,
		Seconds: moved.sent.Seconds, MBPerS: moved.sent.MBPerS, SHA256: moved.received.SHA256,
		MSS: moved.sent.MSS, Retransmits: moved.sent.Retransmits, RTOs: moved.sent.Timeouts,
		TailProbes: moved.sent.TailProbes, WindowProbes: moved.sent.WindowProbes,
		MinRTTms:     milliseconds(moved.sent.MinRTT),
		RoutesAfterS: moved.routesAfter.Seconds(),
		Seed:         d.seed, Machine: machine(), Folder: d.out,
	}
	for _, i := range moved.router {
		r.RouterPackets += i.In.Packets
		for _, drop := range append(i.In.Drops, i.Out.Drops...) {
			if drop.Reason == lossy {
				r.RouterLost += drop.Packets
			} else {
				r.RouterDropped += drop.Packets
			}
		}
	}
	r.setRTT(moved.sent.RTT)
	return r
}

func (r *demoResult) setRTT(rtt time.Duration) {
	r.RTTms = milliseconds(rtt)
	r.BoundMBPerS = lossBound(r.LossPercent, r.MSS, rtt)
	r.OfBound = 0
	if r.BoundMBPerS > 0 {
		r.OfBound = r.MBPerS / r.BoundMBPerS
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// compare compares five SHA-256 digests: of the generated file, of the sent file, of the transfer
// at each end, and of the received file.
func (d *demo) compare(r *demoResult, made string, moved demoMoved) error {
	arrived, err := digestOf(d.path(demoReceived))
	if err != nil {
		return err
	}
	source, err := digestOf(d.path(demoSent))
	if err != nil {
		return err
	}
	r.Match = r.Bytes == d.bytes && made == source && made == moved.sent.SHA256 &&
		made == moved.received.SHA256 && made == arrived
	return nil
}

func (d *demo) record(r *demoResult, moved demoMoved) error {
	samples := moved.polled // less precise than the probe file
	if !d.bare {
		var err error
		if samples, err = d.readSamples(); err != nil {
			return err
		}
	}
	d.samples = samples
	if rtt := figure.MeanRTT(samples); rtt > 0 {
		r.setRTT(rtt)
	}
	if !d.bare {
		if err := d.draw(r, samples); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return files.Overwrite(d.path(demoSummary), append(text, '\n'), 0o644)
}

// readSamples reads the probe file. The sender had one connection.
func (d *demo) readSamples() ([]figure.Sample, error) {
	f, err := files.Input(d.path(demoProbe))
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened only for reading
	samples, err := figure.ReadSamples(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", demoProbe, err)
	}
	return samples, nil
}

// draw draws the figure. Without samples it draws nothing, because the file was empty.
func (d *demo) draw(r *demoResult, samples []figure.Sample) error {
	if len(samples) == 0 {
		return nil
	}
	plot, err := figure.Figure{Title: r.title(), Note: r.note(), Samples: samples}.Plot()
	if err != nil {
		return err
	}
	return plot.WriteFiles(d.dir, demoFigure, d.style)
}

func (r *demoResult) title() string {
	way := "C to A through B"
	if !r.Routed {
		way = "C to A, one link"
	}
	return fmt.Sprintf("%s: %s bytes at %s loss: %.1f MB/s", way, grouped(r.Bytes),
		r.lossText(), r.MBPerS)
}

func (r *demoResult) lossText() string {
	return fmt.Sprintf("%.6g %%", r.LossPercent)
}

func (r *demoResult) note() string {
	text := fmt.Sprintf("RTT %.2f ms on average, minimum %.2f ms; MSS %d; %s segments "+
		"retransmitted, %d RTOs, %d tail probes, %d window probes", r.RTTms, r.MinRTTms, r.MSS,
		grouped(int64(r.Retransmits)), r.RTOs, r.TailProbes, r.WindowProbes)
	if r.BoundMBPerS > 0 {
		text += fmt.Sprintf("; loss bound %.1f MB/s", r.BoundMBPerS)
	}
	return text
}

func (r *demoResult) print(w io.Writer) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s bytes in %.2f s: %.2f MB/s with %s\n\n%s\n",
		grouped(r.Bytes), r.Seconds, r.MBPerS, r.Congestion, r.note())
	if r.Routed {
		fmt.Fprintf(&b, "B received %s packets, dropped %s of them on purpose and %s otherwise\n",
			grouped(int64(r.RouterPackets)), grouped(int64(r.RouterLost)),
			grouped(int64(r.RouterDropped)))
	}
	if r.BoundMBPerS > 0 {
		fmt.Fprintf(&b, "a sender that halves its window at each loss reaches at most\n"+
			"1.31/sqrt(p) * MSS/RTT = %.2f MB/s (the loss bound): %s reached %.2f of that\n",
			r.BoundMBPerS, r.Congestion, r.OfBound)
	}
	b.WriteString("\n" + r.comparison() + "\n")
	fmt.Fprintf(&b, "files in %s: %s\n", r.Folder, strings.Join(left(r.Folder), " "))
	fmt.Fprintf(&b, "`%s demo --cc all` compares %s on this network\n\n%s", called(),
		strings.Join(comparedAlgorithms, ", "), r.verdict())
	_, _ = io.WriteString(w, b.String()) // there is nowhere to report a failed write
}

func (r *demoResult) verdict() string {
	verdict := "equal in the sent file, at both nodes and in the received file"
	if !r.Match {
		verdict = "DIFFERENT at the two ends"
	}
	return fmt.Sprintf("SHA-256 %s\n        %s\n", r.SHA256, verdict)
}

// comparison compares the result with the founding documents' figures. One MB in document 001 is
// 2^20 bytes, as its table of sizes shows. This table uses 10^6.
func (r *demoResult) comparison() string {
	const mib = 1.048576
	rows := [][3]string{
		{"MB/s", "clean", "2 % loss"},
		{
			"founding document 001", fmt.Sprintf("%.1f-%.1f", 12.11*mib, 13.63*mib),
			fmt.Sprintf("%.2f-%.2f", 4.96*mib, 8.45*mib),
		},
		{"founding document 004", "10", "5"},
	}
	here := [3]string{"here", "", ""}
	switch r.LossPercent {
	case 0:
		here[1] = fmt.Sprintf("%.1f", r.MBPerS)
	case 2:
		here[2] = fmt.Sprintf("%.1f", r.MBPerS)
	default:
		here[0] = "here, at " + r.lossText()
		here[2] = fmt.Sprintf("%.1f", r.MBPerS)
	}
	var b strings.Builder
	for _, row := range append(rows, here) {
		fmt.Fprintf(&b, "  %-24s %10s %12s\n", row[0], row[1], row[2])
	}
	return b.String()
}

func left(folder string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return names
}
