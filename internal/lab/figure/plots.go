package figure

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Plot is a figure of an experiment.
type Plot struct {
	Name    string // base name of its files
	Title   string
	Finding string // the main observation with its numbers; may be empty
	Caption string // what the figure shows, and how it was measured
	chart   chart.Figure
}

func (p *Plot) heading() string {
	if p.Finding == "" {
		return p.Title
	}
	return p.Title + ": " + p.Finding
}

// Write draws the plot in one of Formats.
func (p *Plot) Write(w io.Writer, format string, s Style) error {
	return p.chart.Write(w, format, s)
}

// WriteFiles writes the plot into a folder, in all Formats.
func (p *Plot) WriteFiles(folder, name string, s Style) error {
	for i, file := range FileNames(name) {
		var b bytes.Buffer
		if err := p.Write(&b, Formats[i], s); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := result.WriteFile(filepath.Join(folder, file), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// FileNames returns the names of a plot's files, one for each of Formats.
func FileNames(name string) []string {
	files := make([]string, len(Formats))
	for i, format := range Formats {
		files[i] = name + "." + format
	}
	return files
}

// Style is the size and the font of a figure.
type Style = chart.Style

// Formats are the file formats of figures, by their suffixes.
var Formats = chart.Formats

// Plots returns the figures of a run, without empty ones.
func Plots(rec *result.Record) []Plot {
	v := newView(rec)
	var plots []Plot
	for _, draw := range []func(*view) []Plot{
		windowPlots, rttPlots, sequencePlots, throughputPlots, queuePlots, flightPlots,
		fairnessPlots, objectPlots, ownPlots,
	} {
		plots = append(plots, draw(v)...)
	}
	for i := range plots {
		plots[i].chart.Alt = plots[i].heading() + ". " + plots[i].Caption
	}
	return plots
}

// With up to maxPanels flows, each flow has a panel of its own. With up to maxCurves flows, each
// has an entry in the legend.
const (
	maxPanels = 4
	maxCurves = 12
)

// view is a record with the data that all its figures need.
type view struct {
	*result.Record
	end   float64 // end of the time axis, in seconds
	flows []flow
	links []result.LinkRecord
}

type flow struct {
	*result.FlowRecord
	index int
	alone bool // the only flow of its run
	paint chart.Paint
	// link is the link that carries the flow's data; nil: it was not observed.
	link *result.LinkRecord
	// wire is the size of a segment on the link, in bytes.
	wire float64
}

func newView(rec *result.Record) *view {
	v := &view{Record: rec, end: rec.Duration.Seconds(), links: rec.Links}
	if !(v.end > 0) {
		v.end = lastInstant(rec).Seconds()
	}
	if !(v.end > 0) {
		v.end = 1
	}
	labels := make([]string, len(rec.Flows))
	for i := range rec.Flows {
		labels[i] = rec.Flows[i].Label
		labels[i] = cmp.Or(labels[i], rec.Flows[i].Name)
	}
	paints := shades(labels)
	for i := range rec.Flows {
		f := flow{
			FlowRecord: &rec.Flows[i], index: i, paint: paints[i], alone: len(rec.Flows) == 1,
		}
		f.findLink(rec.Links)
		v.flows = append(v.flows, f)
	}
	return v
}

// pick returns the flows with a property.
func (v *view) pick(has func(*flow) bool) (list []*flow) {
	for i := range v.flows {
		if f := &v.flows[i]; has(f) {
			list = append(list, f)
		}
	}
	return list
}

func progressed(f *flow) bool { return len(f.Progress) > 0 }

// lastInstant returns the time of a record's last event.
func lastInstant(rec *result.Record) time.Duration {
	var last time.Duration
	for i := range rec.Flows {
		f := &rec.Flows[i]
		for _, s := range f.Samples {
			last = max(last, s.At)
		}
		for _, p := range f.Progress {
			last = max(last, p.At)
		}
		for _, s := range f.Segments {
			last = max(last, s.At)
		}
	}
	for i := range rec.Links {
		for _, e := range rec.Links[i].Events {
			last = max(last, e.At)
		}
	}
	for _, o := range rec.Objects {
		last = max(last, o.End)
	}
	return last
}

// These are sizes of the headers of IPv4 and TCP in bytes: with timestamps, and with all options.
const (
	usualHeaders = 52
	maxHeaders   = 120
)

// findLink finds the link that carries the flow's data, up or down, and the size of its packets
// there.
func (f *flow) findLink(links []result.LinkRecord) {
	want := "down"
	if f.Upward {
		want = "up"
	}
	for i := range links {
		if links[i].Name != want {
			continue
		}
		sizes := map[int]int{}
		for _, e := range links[i].Events {
			if e.Flow == f.index && e.Kind == result.Arrival && e.Bytes > 0 {
				sizes[e.Bytes]++
			}
		}
		if len(sizes) > 0 {
			f.link = &links[i]
			f.wire = packetSize(sizes, f.MSS)
		}
	}
	f.wire = cmp.Or(f.wire, float64(max(f.MSS, 1))+usualHeaders)
}

// packetSize returns the size of full packets; 0: unknown. It divides the most frequent size by the
// number of packets in it, because one event of a long run may stand for several packets.
func packetSize(sizes map[int]int, mss int) float64 {
	usual := 0
	for size, n := range sizes {
		if size >= mss && (n > sizes[usual] || n == sizes[usual] && size < usual) {
			usual = size
		}
	}
	wire := float64(usual)
	if mss > 0 {
		wire /= max(1, math.Round(wire/(float64(mss)+usualHeaders)))
	}
	if wire < float64(mss) || wire > float64(mss)+maxHeaders {
		return 0
	}
	return wire
}

// payload returns the share of the link's bytes that reaches the application.
func (f *flow) payload() float64 {
	if f.MSS <= 0 {
		return 1
	}
	return min(1, float64(f.MSS)/f.wire)
}

func (f *flow) title() string {
	switch {
	case f.Label == "" || strings.HasPrefix(f.Name, f.Label+"-"):
		return f.Name
	case f.Name == "" || f.Name == f.Label || f.alone:
		return f.Label
	}
	return f.Name + " (" + f.Label + ")"
}

// bottleneck returns the bottleneck's rate in bytes/s and its queue's limit in bytes; 0: unlimited.
func (v *view) bottleneck(f *flow) (capacity, limit float64) {
	rate := v.Rate
	if f.link != nil {
		limit = float64(max(f.link.Limit, 0))
		if f.link.Rate > 0 {
			rate = f.link.Rate
		}
	}
	if !(rate > 0) || math.IsInf(rate, 0) {
		return 0, limit
	}
	return rate / 8, limit
}

// baseRTT returns the flow's round-trip time without a queue, in seconds; 0: unknown.
func (v *view) baseRTT(f *flow) float64 {
	if f.RTT > 0 {
		return f.RTT.Seconds()
	}
	return max(0, v.RTT.Seconds())
}

func (v *view) time() chart.Axis { return timeAxis(0, v.end) }

// timeAxis returns an axis over a range of seconds, in a readable unit. For a transfer of a tenth
// of a second, the unit is milliseconds.
func timeAxis(from, to float64) chart.Axis {
	return axis("time", result.ScaleOf("s", to), from, to)
}

// axis returns an axis for values in a metric's unit. Its numbers are in the unit u.
func axis(label string, u result.Scale, low, high float64) chart.Axis {
	return chart.Axis{Label: joined(label, u.Name), Min: low, Max: high, Per: u.Size}
}

func (v *view) moments() []chart.Moment {
	var list []chart.Moment
	for _, m := range v.Marks {
		list = append(list, chart.Moment{Value: m.At.Seconds(), Text: m.Text})
	}
	return list
}

func (v *view) stacked(panels []chart.Panel, height float64) chart.Figure {
	var f chart.Figure
	for i := range panels {
		panels[i].X.Bare = i < len(panels)-1
		panels[i].Moments = v.moments()
		for j := range panels[i].Moments {
			if i > 0 {
				panels[i].Moments[j].Text = ""
			}
		}
		f.Rows = append(f.Rows, chart.Row{Height: height, Panels: panels[i : i+1]})
	}
	return f
}

// shareScale gives panels the same scale if every curve remains legible on it.
func shareScale(panels []chart.Panel) {
	least, greatest := math.Inf(1), 0.0
	for i := range panels {
		y := &panels[i].Y
		least, greatest = min(least, y.Max/y.Per), max(greatest, y.Max/y.Per)
		if y.Label != panels[0].Y.Label {
			return
		}
	}
	for i := range panels {
		if greatest <= 4*least {
			panels[i].Y.Max = greatest * panels[i].Y.Per
		}
	}
}

func heightOf(n int) float64 {
	return [...]float64{150, 150, 95, 76, 64}[min(n, 4)]
}

// points returns one curve of samples. Values that are not numbers are gaps.
func points[T any](list []T, x, y func(*T) float64) []chart.Point {
	found := make([]chart.Point, len(list))
	for i := range list {
		found[i] = chart.Point{X: x(&list[i]), Y: y(&list[i])}
	}
	return found
}

func sampleTime(s *result.Sample) float64 { return s.At.Seconds() }

// lasting extends the last value of a step function to the end.
func lasting(list []chart.Point, end float64) []chart.Point {
	last := list[len(list)-1]
	last.X = end
	return append(list, last)
}

func maxY(points []chart.Point) float64 {
	greatest := 0.0
	for _, p := range points {
		if !math.IsInf(p.Y, 0) {
			greatest = max(greatest, orZero(p.Y))
		}
	}
	return greatest
}

func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

func shown(points []chart.Point) bool {
	return slices.ContainsFunc(points, func(p chart.Point) bool { return !infinite(p.Y) })
}

func growth[T any, N int | uint64](
	samples []T, x func(*T) float64, counter func(*T) N,
) (at []float64) {
	for i := 1; i < len(samples); i++ {
		if counter(&samples[i]) > counter(&samples[i-1]) {
			at = append(at, x(&samples[i]))
		}
	}
	return at
}

func expiries(s *result.Sample) uint64 { return s.Timeouts }

// strips returns the events of a flow as strips: packets that the network lost, and the sender's
// reactions.
func (v *view) strips(f *flow) []chart.Strip {
	var drops, recoveries []float64
	if f.link != nil {
		for _, e := range f.link.Events {
			if e.Kind == result.Drop && e.Flow == f.index {
				drops = append(drops, e.At.Seconds())
			}
		}
	}
	for i := range f.Samples {
		if f.Samples[i].State == "recovery" && (i == 0 || f.Samples[i-1].State != "recovery") {
			recoveries = append(recoveries, f.Samples[i].At.Seconds())
		}
	}
	var list []chart.Strip
	for _, s := range []chart.Strip{
		{Name: "lost", Paint: events["lost"], At: drops},
		{Name: "recovery", Paint: events["recovery"], At: recoveries},
		{Name: "RTO", Paint: events["RTO"], At: growth(f.Samples, sampleTime, expiries)},
	} {
		if len(s.At) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// maxLines limits the number of curves in a panel: more would hide each other.
const maxLines = 48

// drawnFlows picks the flows to draw, evenly from the first to the last.
func drawnFlows(flows []*flow) []*flow {
	if len(flows) <= maxLines {
		return flows
	}
	list := make([]*flow, maxLines)
	for i := range list {
		list[i] = flows[i*(len(flows)-1)/(maxLines-1)]
	}
	return list
}

// keyed returns the flows that the legend of a panel names. These are all flows, if there are few.
// If there are many, they are the first and the last of each kind; if all are of one kind, also the
// middle one.
func keyed(flows []*flow) map[*flow]bool {
	named := map[*flow]bool{}
	if len(flows) <= maxCurves {
		for _, f := range flows {
			named[f] = true
		}
		return named
	}
	var kinds []string
	for _, f := range flows {
		if !slices.Contains(kinds, f.Label) {
			kinds = append(kinds, f.Label)
		}
	}
	for _, kind := range kinds[:min(len(kinds), maxCurves/2)] {
		var own []*flow
		for _, f := range flows {
			if f.Label == kind {
				own = append(own, f)
			}
		}
		named[own[0]], named[own[len(own)-1]] = true, true
		if len(kinds) == 1 {
			named[own[len(own)/2]] = true
		}
	}
	return named
}

// manyFlowsText says which of many flows a figure draws; empty if it draws all.
func manyFlowsText(all, drawn int) string {
	switch {
	case all <= maxCurves:
		return ""
	case drawn < all:
		return fmt.Sprintf(" %[2]d of %[1]d flows are drawn, from the first (dark) to the last "+
			"(light).",
			all, drawn)
	}
	return " Flows are drawn from the first (dark) to the last (light)."
}
