package figure

import (
	"hash/fnv"
	"slices"
	"strings"
	"unicode"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
)

// paints are the colors of series. They are the same in all figures of all experiments. Series that
// figures compare have different colors.
var paints = map[string]chart.Paint{
	"tahoe":   chart.Orange,
	"reno":    chart.Sky,
	"newreno": chart.Green,
	"cubic":   chart.Blue,
	"bbr":     chart.Vermillion,
	"bbr3":    chart.Vermillion.Tint(0.45),
	"fixed":   chart.Purple,
	"none":    chart.Gray,
	"fence":   chart.Green,
	"window":  chart.Orange,
	"rcp":     chart.Green,
	"rdt":     chart.Vermillion,
	"tcp":     chart.Blue,
	"quic":    chart.Purple,
	// The orders in which TCP sends objects.
	"sequential":  chart.Blue,
	"interleaved": chart.Sky,
	"parallel":    chart.Purple,
}

// events are the colors of a flow's events. They are the same in all figures.
var events = map[string]chart.Paint{
	"lost":          chart.Vermillion,
	"dropped":       chart.Vermillion,
	"retransmitted": chart.Vermillion,
	"recovery":      chart.Soft,
	"RTO":           chart.Ink,
	"TLP":           chart.Green,
}

// otherPaints are the colors of labels that are not in paints.
var otherPaints = []chart.Paint{
	chart.Purple.Tint(-0.4), chart.Green.Tint(-0.4), chart.Orange.Tint(-0.45),
	chart.Blue.Tint(0.35), chart.Vermillion.Tint(-0.4), chart.Sky.Tint(-0.45),
	chart.Green.Tint(0.4), chart.Purple.Tint(0.3),
}

// PaintOf returns the color of a label. It is the color of the whole label, or of the last word in
// the label that has a color. Other labels get a color by their hash.
func PaintOf(label string) chart.Paint {
	label = strings.ToLower(label)
	if p, ok := paints[label]; ok {
		return p
	}
	words := strings.FieldsFunc(label, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for _, word := range slices.Backward(words) {
		if p, ok := paints[word]; ok {
			return p
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(label)) // writing to a hash does not fail
	return otherPaints[h.Sum32()%uint32(len(otherPaints))]
}

// shades returns the colors of labels. Up to three labels with one color get shades of it. More
// than three get a ramp from dark to light: through all colors if there are no other labels, or
// else through shades of their color.
func shades(labels []string) []chart.Paint {
	alike := map[chart.Paint]int{}
	for _, label := range labels {
		alike[PaintOf(label)]++
	}
	seen := map[chart.Paint]int{}
	list := make([]chart.Paint, len(labels))
	for i, label := range labels {
		p := PaintOf(label)
		n, at := alike[p], seen[p]
		seen[p]++
		switch {
		case n <= maxShades:
			list[i] = p.Tint([maxShades]float64{0, -0.4, 0.45}[at])
		case len(alike) == 1:
			list[i] = ramp(float64(at) / float64(n-1))
		default:
			list[i] = p.Tint(-0.65 + 1.3*float64(at)/float64(n-1))
		}
	}
	return list
}

// maxShades limits the labels of one color that get shades. More labels get a ramp.
const maxShades = 3

// stops are points of viridis, the colormap of van der Walt and Smith for matplotlib. Its lightness
// grows evenly, so readers with a color vision deficiency can read it. The ramp omits its last
// part, which is too light for lines on paper.
var stops = []uint32{
	0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6dcd59,
}

// ramp returns the color at a share of the range from dark to light.
func ramp(share float64) chart.Paint {
	at := min(max(share, 0), 1) * float64(len(stops)-1)
	i := min(int(at), len(stops)-2)
	part := at - float64(i)
	mix := func(shift uint) uint32 {
		a, b := float64(stops[i]>>shift&0xff), float64(stops[i+1]>>shift&0xff)
		return uint32(a+(b-a)*part+0.5) << shift
	}
	return chart.RGB(mix(16) | mix(8) | mix(0))
}
