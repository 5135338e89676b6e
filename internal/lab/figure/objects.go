package figure

import (
	"cmp"
	"math"
	"slices"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// maxObjects limits the objects that a panel shows. It shows the first ones.
const maxObjects = 200

// minMark is the minimum length of a drawn object, in points.
const minMark = 1.6

// objectPlots show when each object was requested and when it was complete. The flows are below
// each other.
func objectPlots(v *view) []Plot {
	if len(v.Objects) == 0 {
		return nil
	}
	byFlow := map[string][]result.Object{}
	var names []string
	last := 0.0
	for _, o := range v.Objects {
		if _, ok := byFlow[o.Flow]; !ok {
			names = append(names, o.Flow)
		}
		byFlow[o.Flow] = append(byFlow[o.Flow], o)
		last = max(last, o.End.Seconds())
	}
	names = names[:min(len(names), 2*maxPanels)]
	axis := v.time()
	if last > 0 && last < v.end {
		axis = timeAxis(0, 1.02*last)
	}
	p := Plot{Name: "objects", Title: "Objects"}
	p.Caption = "A bar for each object, from its request to its last byte, in the order of " +
		"completion; small objects are dark. Bars have a minimum length."
	p.chart = chart.Figure{}
	unfinished := false
	for i, name := range names {
		height := min(240, max(40, 4*float64(len(byFlow[name]))))
		if len(names) > 2 {
			height = min(height, 75)
		}
		panel := v.objectPanel(name, byFlow[name], height)
		panel.X = axis
		panel.X.Bare = i < len(names)-1
		for _, o := range byFlow[name] {
			unfinished = unfinished || !o.Done
		}
		p.chart.Rows = append(p.chart.Rows, chart.Row{Height: height, Panels: []chart.Panel{panel}})
	}
	if unfinished {
		p.Caption += " Dashed objects were incomplete when the run ended."
	}
	return []Plot{p}
}

func (v *view) objectPanel(name string, objects []result.Object, height float64) chart.Panel {
	slices.SortStableFunc(objects, func(a, b result.Object) int {
		if a.Done != b.Done {
			if a.Done {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start))
	})
	objects = objects[:min(len(objects), maxObjects)]
	largest := 0
	for _, o := range objects {
		largest = max(largest, o.Size)
	}
	paint, title := chart.Blue, name
	for i := range v.flows {
		if v.flows[i].Name == name {
			paint, title = v.flows[i].paint, v.flows[i].title()
		}
	}
	p := chart.Panel{
		Title: title,
		Y: chart.Axis{
			Label: "object", Min: 0.2, Max: float64(len(objects)) + 1, Reversed: true,
		},
	}
	thick := min(2.4, 0.8*height/float64(len(objects)))
	layers := [3]chart.Layer{
		{Name: "large", Kind: chart.Line, Paint: paint, Width: thick, MinLength: minMark},
		{
			Name: "small", Kind: chart.Line, Paint: paint.Tint(-0.45), Width: thick,
			MinLength: minMark,
		},
		{
			Name: "not complete", Kind: chart.Line, Paint: chart.Ink, Width: min(1, thick),
			Dash: true,
		},
	}
	mixed := false
	for i, o := range objects {
		which, end := 0, o.End.Seconds()
		switch {
		case !o.Done:
			which, end = 2, v.end
		case 2*o.Size < largest:
			which, mixed = 1, true
		}
		y := float64(i + 1)
		layers[which].Points = append(layers[which].Points, chart.Point{X: o.Start.Seconds(), Y: y},
			chart.Point{X: end, Y: y}, chart.Point{X: math.NaN(), Y: y})
	}
	if !mixed {
		layers[0].Name = ""
	}
	p.Layers = layers[:]
	return p
}
