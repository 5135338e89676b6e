package chart

type canvas interface {
	// stroke draws open lines.
	stroke(lines [][]Point, p pen)
	// fill fills closed shapes.
	fill(shapes [][]Point, p Paint, opacity float64)
	dots(at []Point, diameter float64, p Paint)
	text(s string, at Point, l lettering)
}

type pen struct {
	paint Paint
	width float64
	dash  []float64
}

// lettering is the style of a text. The text's point is on the base line.
type lettering struct {
	size   float64
	bold   bool
	anchor anchor
	upward bool // the text is rotated by 90 degrees, to be read from the right
	paint  Paint
}

// anchor is the part of a text that is at the text's point.
type anchor int

const (
	start anchor = iota
	middle
	end
)

type box struct{ left, top, right, bottom float64 }

func (b box) width() float64  { return b.right - b.left }
func (b box) height() float64 { return b.bottom - b.top }

func (b box) corners() []Point {
	return []Point{
		{X: b.left, Y: b.top},
		{X: b.right, Y: b.top},
		{X: b.right, Y: b.bottom},
		{X: b.left, Y: b.bottom},
	}
}

func (b box) clamp(p Point) Point {
	return Point{X: min(max(p.X, b.left), b.right), Y: min(max(p.Y, b.top), b.bottom)}
}

func (b box) has(p Point) bool {
	return p.X >= b.left && p.X <= b.right && p.Y >= b.top && p.Y <= b.bottom
}

func (b box) clip(line []Point) [][]Point {
	var kept [][]Point
	var piece []Point
	for i, p := range line {
		if i == 0 {
			if b.has(p) {
				piece = append(piece, p)
			}
			continue
		}
		from, to, ok := b.cut(line[i-1], p)
		if !ok {
			continue
		}
		if len(piece) == 0 {
			piece = append(piece, from)
		}
		piece = append(piece, to)
		if to != p {
			kept = append(kept, piece)
			piece = nil
		}
	}
	if len(piece) > 0 {
		kept = append(kept, piece)
	}
	return kept
}

// cut returns the part of a segment inside the box (Liang and Barsky's algorithm).
func (b box) cut(from, to Point) (Point, Point, bool) {
	dx, dy := to.X-from.X, to.Y-from.Y
	enter, leave := 0.0, 1.0
	for _, edge := range [...][2]float64{
		{-dx, from.X - b.left},
		{dx, b.right - from.X},
		{-dy, from.Y - b.top},
		{dy, b.bottom - from.Y},
	} {
		switch toward, room := edge[0], edge[1]; {
		case toward == 0 && room < 0:
			return from, to, false
		case toward < 0:
			enter = max(enter, room/toward)
		case toward > 0:
			leave = min(leave, room/toward)
		}
	}
	if enter > leave {
		return from, to, false
	}
	in, out := from, to
	if enter > 0 {
		in = Point{X: from.X + enter*dx, Y: from.Y + enter*dy}
	}
	if leave < 1 {
		out = Point{X: from.X + leave*dx, Y: from.Y + leave*dy}
	}
	return in, out, true
}
