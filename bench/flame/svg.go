package flame

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"slices"
	"strings"
)

// Dimensions of the picture, in pixels.
const (
	width     = 1200
	rowHeight = 16
	margin    = 10
	heading   = 30
	letter    = 6.6 // average width of a character
	narrowest = 0.4 // narrower frames are not drawn
)

// frame is a function in a call stack.
type frame struct {
	name  string
	time  int64
	calls []*frame
}

func (f *frame) call(name string) *frame {
	for _, c := range f.calls {
		if c.name == name {
			return c
		}
	}
	c := &frame{name: name}
	f.calls = append(f.calls, c)
	return c
}

func (p *Profile) tree() *frame {
	root := &frame{name: "all"}
	for _, s := range p.Stacks {
		at := root
		at.time += s.Time
		for _, name := range s.Functions {
			at = at.call(Short(name))
			at.time += s.Time
		}
	}
	return root
}

func (f *frame) depth() int {
	deepest := 0
	for _, c := range f.calls {
		deepest = max(deepest, c.depth())
	}
	return deepest + 1
}

// WriteSVG draws the profile as a flame graph. A caller is below its callees. Its width is the time
// of the caller and its callees. The horizontal order has no meaning.
func (p *Profile) WriteSVG(w io.Writer, title string) error {
	root := p.tree()
	height := heading + root.depth()*rowHeight + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14">%s</text>`+"\n",
		margin, html.EscapeString(title))
	root.draw(&b, canvas{
		bottom: float64(height - margin), scale: (width - 2*margin) / float64(max(1, root.time)),
		total: float64(max(1, root.time)),
	}, margin, 0)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

type canvas struct{ bottom, scale, total float64 }

func (f *frame) draw(b *strings.Builder, c canvas, x float64, row int) {
	wide := float64(f.time) * c.scale
	if wide < narrowest {
		return
	}
	y := c.bottom - float64(row+1)*rowHeight
	name := html.EscapeString(f.name)
	fmt.Fprintf(b, `<g><title>%s, %.1f %%</title>`, name, 100*float64(f.time)/c.total)
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s" stroke="#fff" `+
		`stroke-width="0.5"/>`, x, y, wide, rowHeight-1, color(f.name))
	if fits := int(wide / letter); fits >= 4 {
		text := f.name
		if len(text) > fits {
			text = text[:fits-1] + "…"
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`, x+2, y+11.5, html.EscapeString(text))
	}
	b.WriteString("</g>\n")
	slices.SortStableFunc(f.calls, func(a, b *frame) int { return cmp.Compare(a.name, b.name) })
	for _, call := range f.calls {
		call.draw(b, c, x, row+1)
		x += float64(call.time) * c.scale
	}
}

// color returns the color of a function's package: warm for the project's, gray for Go's and the
// kernel's.
func color(name string) string {
	pkg, _, _ := strings.Cut(name, ".")
	h := fnv.New32a()
	_, _ = h.Write([]byte(pkg)) // writing to a hash never fails
	hue := h.Sum32() % 60
	if pkg == "runtime" || strings.Contains(name, "yscall") || pkg == "all" {
		return fmt.Sprintf("hsl(210,12%%,%d%%)", 70+hue/5)
	}
	return fmt.Sprintf("hsl(%d,80%%,%d%%)", hue, 66+hue/6)
}
