package figure

import (
	"hash/fnv"
	"slices"
	"strings"
	"unicode"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
)

// paints are the colours of what is compared: the same in every figure of every experiment, so
// that a reader who has seen one knows the next. What stands beside each other differs.
var paints = map[string]chart.Paint{
	"tahoe":   chart.Orange,
	"reno":    chart.Sky,
	"newreno": chart.Green,
	"cubic":   chart.Blue,
	"bbr":     chart.Vermillion,
	"fixed":   chart.Purple,
	"none":    chart.Grey,
	"fence":   chart.Green,
	"window":  chart.Orange,
	"rcp":     chart.Green,
	"rdt":     chart.Vermillion,
	"tcp":     chart.Blue,
	"quic":    chart.Purple,
}

// strangers are the colours of what has none of its own.
var strangers = []chart.Paint{
	chart.Purple.Tint(-0.4), chart.Green.Tint(-0.4), chart.Orange.Tint(-0.45),
	chart.Blue.Tint(0.35), chart.Vermillion.Tint(-0.4), chart.Sky.Tint(-0.45),
	chart.Green.Tint(0.4), chart.Purple.Tint(0.3),
}

// PaintOf is the colour of a label: that of the whole, or of the last word of it that has one, or
// one of a few by its hash.
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
	_, _ = h.Write([]byte(label)) // a hash takes everything
	return strangers[h.Sum32()%uint32(len(strangers))]
}

// shades are the colours of labels in their order: who shares a colour has another shade of it.
func shades(labels []string) []chart.Paint {
	steps := [mostCurves]float64{
		0, -0.4, 0.45, -0.2, 0.25, -0.6, 0.6, -0.3, 0.35, -0.5, 0.15, -0.1,
	}
	seen := map[chart.Paint]int{}
	list := make([]chart.Paint, len(labels))
	for i, label := range labels {
		p := PaintOf(label)
		list[i] = p.Tint(steps[seen[p]%len(steps)])
		seen[p]++
	}
	return list
}
