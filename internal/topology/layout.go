package topology

import "math"

// The nodes of a picture are placed by stress majorization (Gansner, Koren and North, 2004): it
// moves nodes until their distance in the picture is proportional to the number of links between
// them. It starts from a circle and draws no random numbers.

const (
	rounds  = 300
	spacing = 230.0 // distance between neighbors, in the picture's units
	apart   = 1.5   // distance between unconnected parts, in links beyond the largest distance
)

// lay returns a position for every node, and then one for the middle of every link that does not
// have two ends.
func (g *Graph) lay() [][2]float64 {
	n := len(g.Nodes)
	var links []Link
	middles := 0
	for i := range g.Links {
		ends := g.Links[i].Ends
		if len(ends) == 2 {
			links = append(links, Link{A: ends[0].Node, B: ends[1].Node})
			continue
		}
		for _, s := range ends {
			links = append(links, Link{A: s.Node, B: n + middles})
		}
		middles++
	}
	all := n + middles
	wanted := make([][]float64, all)
	furthest := 1
	for i := range all {
		hops := distances(all, links, i)
		wanted[i] = make([]float64, all)
		for j, h := range hops {
			wanted[i][j] = float64(h)
			furthest = max(furthest, h)
		}
	}
	for i := range wanted {
		for j, d := range wanted[i] {
			if d < 0 {
				wanted[i][j] = float64(furthest) + apart
			}
		}
	}
	at := make([][2]float64, all)
	for i := range at {
		angle := 2*math.Pi*float64(i)/float64(all) + 0.1
		at[i] = [2]float64{float64(furthest) * math.Cos(angle), float64(furthest) * math.Sin(angle)}
	}
	for range rounds {
		relax(at, wanted)
	}
	level(at)
	for i := range at {
		at[i][0] *= spacing
		at[i][1] *= spacing
	}
	return at
}

// relax moves each node to the average of the positions that its distances to the other nodes
// suggest, weighted by the inverse square of the distance.
func relax(at [][2]float64, wanted [][]float64) {
	for i := range at {
		var x, y, weights float64
		for j := range at {
			if i == j {
				continue
			}
			dx, dy := at[i][0]-at[j][0], at[i][1]-at[j][1]
			length := max(math.Hypot(dx, dy), 1e-6)
			d := wanted[i][j]
			weight := 1 / (d * d)
			x += weight * (at[j][0] + dx*d/length)
			y += weight * (at[j][1] + dy*d/length)
			weights += weight
		}
		if weights > 0 {
			at[i] = [2]float64{x / weights, y / weights}
		}
	}
}

// level rotates the picture so that its longest axis is horizontal and the first node is on the
// left.
func level(at [][2]float64) {
	var mx, my, xx, yy, xy float64
	for _, p := range at {
		mx += p[0] / float64(len(at))
		my += p[1] / float64(len(at))
	}
	for _, p := range at {
		dx, dy := p[0]-mx, p[1]-my
		xx, yy, xy = xx+dx*dx, yy+dy*dy, xy+dx*dy
	}
	angle := math.Atan2(2*xy, xx-yy) / 2
	sin, cos := math.Sincos(angle)
	for i, p := range at {
		dx, dy := p[0]-mx, p[1]-my
		at[i] = [2]float64{dx*cos + dy*sin, dy*cos - dx*sin}
	}
	if len(at) > 0 && at[0][0] > 0 {
		for i := range at {
			at[i][0], at[i][1] = -at[i][0], -at[i][1]
		}
	}
}
