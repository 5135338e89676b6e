package topology

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
)

const style = `
    svg { color-scheme: light dark }
    text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif }
    text { fill: #1a1a1a; text-anchor: middle }
    .title { font-size: 17px; font-weight: 600; text-anchor: start }
    .name { font-size: 17px; font-weight: 600 }
    .addr, .net { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }
    .net { font-size: 12px }
    .addr { font-size: 11px }
    .net { fill: #555 }
    .halo { stroke: #fff; stroke-width: 5px; stroke-linejoin: round; paint-order: stroke }
    .link { stroke: #5f6b76; stroke-width: 2.5; fill: none }
    .host { fill: #d7ebf8; stroke: #0072b2; stroke-width: 2.5 }
    .router { fill: #fdecd2; stroke: #b25900; stroke-width: 2.5 }
    .down { fill: #f1f3f5; stroke: #8a949e; stroke-dasharray: 5 4 }
    .card { fill: #fff; stroke: #d0d5da }
    @media (prefers-color-scheme: dark) {
      text { fill: #f1f3f5 } .net { fill: #aab4be } .halo { stroke: #16191d }
      .card { fill: #16191d; stroke: #3a424a } .link { stroke: #8a949e }
      .host { fill: #0d3b57 } .router { fill: #553008 } .down { fill: #23282e }
    }
`

const (
	margin  = 90.0
	headers = 40.0 // space above the network, for the title
)

// SVG returns a picture of the graph: hosts are boxes, routers circles, nodes that are down dashed.
func (g *Graph) SVG() string {
	at := g.lay()
	width, height := frame(at)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" `+
		`width="%.0f" height="%.0f" role="img" aria-labelledby="title desc">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "  <title id=\"title\">%s</title>\n  <desc id=\"desc\">%s</desc>\n"+
		"  <style>%s  </style>\n", escape(g.Title), escape(g.describe()), style)
	fmt.Fprintf(&b, `  <rect class="card" x="0.5" y="0.5" width="%.0f" height="%.0f" rx="12"/>`,
		width-1, height-1)
	b.WriteString("\n")
	text(&b, "title", 24, 32, g.Title)
	g.drawLinks(&b, at)
	for i, n := range g.Nodes {
		x, y := at[i][0], at[i][1]
		class := "host"
		if n.Router {
			class = "router"
		}
		if n.Down {
			class += " down"
		}
		if n.Router {
			fmt.Fprintf(&b, `  <circle class="%s" cx="%.1f" cy="%.1f" r="27"/>`+"\n", class, x, y)
		} else {
			fmt.Fprintf(&b, `  <rect class="%s" x="%.1f" y="%.1f" width="62" height="44" rx="7"/>`,
				class, x-31, y-22)
			b.WriteString("\n")
		}
		text(&b, "name", x, y+6, n.Name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// frame moves the nodes into the picture, and returns its size.
func frame(at [][2]float64) (width, height float64) {
	low := [2]float64{math.Inf(1), math.Inf(1)}
	high := [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, p := range at {
		for k := range p {
			low[k], high[k] = min(low[k], p[k]), max(high[k], p[k])
		}
	}
	for i := range at {
		at[i][0] += margin - low[0]
		at[i][1] += margin + headers/2 - low[1]
	}
	width, height = high[0]-low[0]+2*margin, high[1]-low[1]+2*margin+headers/2
	return math.Ceil(width), math.Ceil(height)
}

// drawLinks draws the links with their subnets in the middle and the addresses at the ends.
func (g *Graph) drawLinks(b *strings.Builder, at [][2]float64) {
	middles := len(g.Nodes)
	for i := range g.Links {
		e := &g.Links[i]
		mid := g.middle(i, at)
		if len(e.Ends) != 2 {
			mid = at[middles]
			middles++
		}
		for _, s := range e.Ends {
			p := at[s.Node]
			fmt.Fprintf(b, "  <path class=\"link\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
				p[0], p[1], mid[0], mid[1])
		}
		for _, s := range e.Ends {
			p := at[s.Node]
			length := max(math.Hypot(mid[0]-p[0], mid[1]-p[1]), 1)
			label := s.short(e)
			share := min((38+3.4*float64(len(label)))/length, 0.7)
			text(b, "addr halo", p[0]+(mid[0]-p[0])*share, p[1]+(mid[1]-p[1])*share+4, label)
		}
		text(b, "net halo", mid[0], mid[1]-6, e.label())
	}
}

// bend is the distance between the middles of two links that join the same two nodes.
const bend = 76.0

// middle is where the two halves of a link meet. Parallel links have different middles.
func (g *Graph) middle(link int, at [][2]float64) [2]float64 {
	ends := g.Links[link].Ends
	if len(ends) != 2 {
		return [2]float64{}
	}
	a, b := min(ends[0].Node, ends[1].Node), max(ends[0].Node, ends[1].Node)
	before, all := 0, 0
	for i := range g.Links {
		if e := g.Links[i].Ends; len(e) == 2 && min(e[0].Node, e[1].Node) == a &&
			max(e[0].Node, e[1].Node) == b {
			if all++; i < link {
				before++
			}
		}
	}
	dx, dy := at[b][0]-at[a][0], at[b][1]-at[a][1]
	off := (float64(before) - float64(all-1)/2) * bend / max(math.Hypot(dx, dy), 1)
	return [2]float64{(at[a][0]+at[b][0])/2 - dy*off, (at[a][1]+at[b][1])/2 + dx*off}
}

// short returns the label of an end when the link's label has the subnet: if1 .2, or if1 ::2.
func (s *Stub) short(e *Edge) string {
	switch a := s.Addr; {
	case s.Note != "":
	case a.Is4() && e.Subnet.Bits() == 24:
		return fmt.Sprintf("%s .%d", s.Iface, a.As4()[3])
	case a.Is6() && e.Subnet.Bits() == 64:
		var host [16]byte
		copy(host[8:], a.AsSlice()[8:])
		return s.Iface + " " + netip.AddrFrom16(host).String()
	}
	return s.label()
}

func text(b *strings.Builder, class string, x, y float64, what string) {
	if what != "" {
		fmt.Fprintf(b, "  <text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, x, y,
			escape(what))
	}
}

// describe returns the graph as text, one sentence for each link, for readers who cannot see it.
func (g *Graph) describe() string {
	var parts []string
	for i := range g.Links {
		e := &g.Links[i]
		var ends []string
		for _, s := range e.Ends {
			ends = append(ends, g.Nodes[s.Node].Name+" ("+s.label()+")")
		}
		name := "a link"
		if e.label() != "" {
			name = "subnet " + e.label()
		}
		parts = append(parts, name+": "+strings.Join(ends, " and ")+".")
	}
	return strings.Join(parts, " ")
}

var escaping = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func escape(s string) string { return escaping.Replace(s) }
