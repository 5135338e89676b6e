package convergence

import "math/rand/v2"

// graph is a network of routers. Each link connects two of them.
type graph struct {
	routers int
	links   [][2]int
}

func line(n int) graph {
	g := graph{routers: n}
	for i := 1; i < n; i++ {
		g.links = append(g.links, [2]int{i - 1, i})
	}
	return g
}

func ring(n int) graph {
	g := line(n)
	g.links = append(g.links, [2]int{n - 1, 0})
	return g
}

func grid(side int) graph {
	g := graph{routers: side * side}
	for i := range g.routers {
		if i%side > 0 {
			g.links = append(g.links, [2]int{i - 1, i})
		}
		if i >= side {
			g.links = append(g.links, [2]int{i - side, i})
		}
	}
	return g
}

// random returns a tree in which each router is linked to an earlier one, plus half as many links
// between random routers.
func random(n int, rng *rand.Rand) graph {
	g := graph{routers: n}
	seen := map[[2]int]bool{}
	add := func(a, b int) bool {
		w := [2]int{min(a, b), max(a, b)}
		if a == b || seen[w] {
			return false
		}
		seen[w] = true
		g.links = append(g.links, w)
		return true
	}
	for i := 1; i < n; i++ {
		add(rng.IntN(i), i)
	}
	// A small network may have too few pairs.
	for left := min(n/2, n*(n-1)/2-len(g.links)); left > 0; {
		if add(rng.IntN(n), rng.IntN(n)) {
			left--
		}
	}
	return g
}

// neighbors lists each router's neighbors over the links for which use returns true.
func (g *graph) neighbors(use func(link int) bool) [][]int {
	to := make([][]int, g.routers)
	for i, w := range g.links {
		if use(i) {
			to[w[0]] = append(to[w[0]], w[1])
			to[w[1]] = append(to[w[1]], w[0])
		}
	}
	return to
}

// unreached is the distance of routers without a path.
const unreached = -1

// distances returns the hops from each router to the nearest of the roots.
func distances(neighbors [][]int, roots ...int) []int {
	d := make([]int, len(neighbors))
	for i := range d {
		d[i] = unreached
	}
	queue := make([]int, 0, len(d))
	for _, r := range roots {
		d[r] = 0
		queue = append(queue, r)
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, n := range neighbors[at] {
			if d[n] == unreached {
				d[n] = d[at] + 1
				queue = append(queue, n)
			}
		}
	}
	return d
}

func (g *graph) diameter() int {
	neighbors := g.neighbors(func(int) bool { return true })
	longest := 0
	for r := range g.routers {
		for _, d := range distances(neighbors, r) {
			longest = max(longest, d)
		}
	}
	return longest
}

func (g *graph) bridge(link int) bool {
	ends := g.links[link]
	d := distances(g.neighbors(func(i int) bool { return i != link }), ends[0])
	return d[ends[1]] == unreached
}
