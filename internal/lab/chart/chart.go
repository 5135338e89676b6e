// Package chart draws panels of curves over axes, once, as SVG and as PNG.
//
// A Figure's way: layout.go gives each panel its place, axis.go its numbers, draw.go puts the
// layers into it, thinned to what the picture can show (thin.go), on a canvas that is an SVG
// (svg.go) or a PNG (png.go). Lengths are points, of which an inch has 72, from the upper left.
package chart

// Figure is rows of panels, as wide as the text of a page.
type Figure struct {
	// Title stands above the panels, and Note beneath it, smaller; empty: none.
	Title, Note string
	Rows        []Row
	// Alt describes the picture for people who cannot see it.
	Alt string
}

// Row is panels side by side.
type Row struct {
	Height float64 // of the panels' insides; 0: 120
	Panels []Panel
}

// Panel is a set of layers over two axes, with a title above.
type Panel struct {
	Title string
	Share float64 // of the row's width, relative to the other panels; 0: 1
	X, Y  Axis
	// Layers are drawn in their order.
	Layers  []Layer
	Rules   []Rule
	Moments []Moment
	Strips  []Strip
	Names   []Name
}

// Axis is a direction of a panel.
type Axis struct {
	Label    string
	Min, Max float64 // of the axis: finite, and Min below Max
	Log      bool    // Min is above 0
	Reversed bool    // greater values are further left, or further down
	// Names, if there are any, are the numbers 0, 1, 2 and so on.
	Names []string
	// At is where numbers stand, if all of them have room.
	At []float64
	// Per is what a number on the axis stands for: 0.001 for values in seconds with a label that
	// says milliseconds; 0: 1.
	Per float64
	// Bare axes have neither numbers nor a label: those of the panel beneath count.
	Bare bool
}

// Kind is how a layer's points are drawn.
type Kind int

// The kinds of layers.
const (
	Line    Kind = iota // from point to point
	Steps               // each value stands until the next
	Fill                // between Y and Low, from point to point
	Blocks              // between Y and Low, each until the next
	Dots                // each for itself
	Bars                // each a line from Y to Low
	Letters             // Text at each
	Crosses             // a cross at each
	Shape               // the closed polygon of all, filled faintly
)

// Layer is data drawn in one style. Points that are not finite are gaps.
type Layer struct {
	Name    string // in the key; empty: it is not there
	Kind    Kind
	Paint   Paint
	Width   float64 // of a line, or of a dot; 0: 1, or 2 for a dot
	Dash    bool
	Opacity float64 // of the fill; 0: 1, or 0.25 for a Shape
	Text    string  // of Letters
	Beside  bool    // Letters stand to the left of their points, not above them
	// Least is the minimum length of a drawn piece of a Line, in points: pieces that are too short
	// for the picture stay visible.
	Least  float64
	Points []Point // in order of X for all but Dots, Letters, Crosses and Shapes
}

// Point is a point, in the units of the axes or in those of the page.
type Point struct {
	X, Y float64
	Low  float64 // where a bar or a filled area ends
}

// Rule is a level with a name at its right end.
type Rule struct {
	Value float64
	// Steps are the levels that it had before, if it changes; Value is the last of them.
	Steps []Point
	Text  string
	Paint Paint
}

// Name is a label next to a point, on the side that has room.
type Name struct {
	X, Y  float64
	Text  string
	Paint Paint
}

// Moment is a vertical line with a name above it.
type Moment struct {
	Value float64
	Text  string
}

// Strip is a row of ticks beneath a panel: when something happened.
type Strip struct {
	Name  string
	Paint Paint
	At    []float64
}
