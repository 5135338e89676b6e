// Package chart draws panels of curves over axes, with the same code for all file formats.
//
// To draw a Figure, layout.go places each panel, axis.go adds its numbers, and draw.go its layers,
// thinned to the picture's resolution (thin.go). It draws on a canvas that writes SVG (svg.go), PNG
// (png.go), or PDF and EPS (vector.go). Positions are in points (72 per inch) from the upper left
// corner.
package chart

// Figure is a picture with several rows of panels. By default it is as wide as the text of a page.
type Figure struct {
	// Title is printed above the panels, and Note below them in a smaller font. Both may be empty.
	Title, Note string
	Rows        []Row
	// Alt describes the picture for people who cannot see it.
	Alt string
}

// Row is a number of panels side by side.
type Row struct {
	Height float64 // height of the panels without their axes; 0: 120
	Panels []Panel
}

// Panel is a set of layers over two axes, with a title above.
type Panel struct {
	Title string
	Share float64 // width relative to the other panels of the row; 0: 1
	X, Y  Axis
	// Layers are drawn in their order.
	Layers  []Layer
	Rules   []Rule
	Moments []Moment
	Strips  []Strip
	Names   []Name
}

// Kind is how a layer's points are drawn.
type Kind int

// These are the kinds of layers.
const (
	Line    Kind = iota // lines from point to point
	Steps               // steps: each value is valid until the next
	Fill                // area between Y and Low, from point to point
	Blocks              // area between Y and Low in steps: each value is valid until the next
	Dots                // a dot for each point
	Bars                // a line from Y to Low for each point
	Letters             // Text at each point
	Crosses             // a cross at each point
	Shape               // closed polygon of all points, with a faint fill
)

// Layer is data drawn in one style. A point that is not finite makes a gap.
type Layer struct {
	Name    string // entry in the legend; empty: no entry
	Kind    Kind
	Paint   Paint
	Width   float64 // width of a line, or diameter of a dot; 0: 1, or 2 for a dot
	Dash    bool
	Opacity float64 // opacity of the fill; 0: 1, or 0.25 for a Shape
	Text    string  // text of Letters
	AtLeft  bool    // Letters are to the left of their points and not above them
	// MinLength is the minimum length of a drawn piece of a Line in points, so that it is visible.
	MinLength float64
	Points    []Point // sorted by X, except for Dots, Letters, Crosses and Shapes
}

// Point is a point in the units of the axes or of the page.
type Point struct {
	X, Y float64
	Low  float64 // other end of a bar or a filled area
}

// Rule is a horizontal line with a name at its right end.
type Rule struct {
	Value float64
	// Steps are the line's levels if they change along X; Value is the last level.
	Steps []Point
	Text  string
	Paint Paint
}

// Name is a label next to a point, on a side that has room.
type Name struct {
	X, Y  float64
	Text  string
	Paint Paint
}

// Moment is a vertical line with a name above it, at a value of X.
type Moment struct {
	Value float64
	Text  string
}

// Strip is a row of ticks below a panel, one for each event.
type Strip struct {
	Name  string
	Paint Paint
	At    []float64
}
