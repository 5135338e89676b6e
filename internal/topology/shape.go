package topology

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

type shape struct {
	name  string
	sizes []size
	about string
	build func(b *builder, n []int)
}

// size is a number that a shape needs or accepts.
type size struct {
	name        string
	least, most int
	unsaid      int // default; 0: there is no default
}

var shapes = []shape{
	{"line", []size{{"NODES", 2, MaxNodes, 0}}, "hosts at the ends, routers between them", line},
	{
		"ring",
		[]size{{"ROUTERS", 3, MaxNodes - 2, 0}},
		"routers in a ring, hosts on opposite sides", ring,
	},
	{
		"grid",
		[]size{{"ROWS", 1, 31, 0}, {"COLUMNS", 1, 31, 0}},
		"routers in rows and columns, hosts at opposite corners", grid,
	},
	{
		"tree",
		[]size{{"DEPTH", 1, 8, 0}, {"FANOUT", 1, 31, 2}},
		"routers in a tree of DEPTH levels, hosts below the lowest", tree,
	},
	{"star", []size{{"HOSTS", 1, MaxNodes - 1, 0}}, "hosts around one router", star},
	{
		"random",
		[]size{{"ROUTERS", 1, MaxNodes - 2, 0}, {"LINKS", 0, 4 * MaxNodes, -1}},
		"routers joined at random, hosts far from each other", nil,
	},
}

// Shapes lists the shapes with their sizes, for a help text.
func Shapes() []string {
	var list []string
	for _, s := range shapes {
		list = append(list, fmt.Sprintf("%-24s %s", s.usage(), s.about))
	}
	return list
}

func (s *shape) usage() string {
	parts := []string{s.name}
	for _, z := range s.sizes {
		if z.unsaid != 0 {
			z.name = "[" + z.name + "]"
		}
		parts = append(parts, z.name)
	}
	return strings.Join(parts, " ")
}

// Generate plans a network of a common shape. The words are the shape's name and its sizes. The
// seed determines the links of a random network.
func Generate(words []string, seed uint64) (*Plan, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: the shape is missing: must be %s", ErrPlan,
			diagnostic.OneOf(shapeNames()))
	}
	for i := range shapes {
		s := &shapes[i]
		if s.name != words[0] {
			continue
		}
		n, err := s.read(words[1:])
		if err != nil {
			return nil, err
		}
		b := &builder{plan: &Plan{About: strings.Join(words, " ")}}
		switch pairs := n[0] * (n[0] - 1) / 2; {
		case s.build != nil:
			s.build(b, n)
		case n[1] > pairs:
			z := s.sizes[1].name
			return nil, fmt.Errorf("%w: %s %q: must be at most %d, the number of pairs of routers",
				ErrPlan, z, words[2], pairs)
		default:
			scatter(b, n, seed)
		}
		if len(b.plan.Nodes) > MaxNodes {
			return nil, fmt.Errorf("%w: %s has %d nodes: must be at most %d", ErrPlan,
				b.plan.About, len(b.plan.Nodes), MaxNodes)
		}
		return b.plan, nil
	}
	return nil, fmt.Errorf("%w: %q is not a shape%s: must be %s", ErrPlan, words[0],
		diagnostic.DidYouMean(words[0], shapeNames()), diagnostic.OneOf(shapeNames()))
}

func shapeNames() (names []string) {
	for _, s := range shapes {
		names = append(names, s.name)
	}
	return names
}

func (s *shape) read(words []string) ([]int, error) {
	if len(words) > len(s.sizes) {
		return nil, fmt.Errorf("%w: unexpected argument after %q: the syntax is %s", ErrPlan,
			words[len(s.sizes)-1], s.usage())
	}
	n := make([]int, len(s.sizes))
	for i, z := range s.sizes {
		if i >= len(words) {
			if z.unsaid == 0 {
				return nil, fmt.Errorf("%w: %s is missing: the syntax is %s", ErrPlan, z.name,
					s.usage())
			}
			n[i] = z.unsaid
			continue
		}
		v, err := strconv.Atoi(words[i])
		if err != nil || v < z.least || v > z.most {
			return nil, fmt.Errorf("%w: %s %q: must be a number from %d to %d, as in %s", ErrPlan,
				z.name, words[i], z.least, z.most, s.usage())
		}
		n[i] = v
	}
	return n, nil
}

type builder struct {
	plan  *Plan
	hosts int
}

func (b *builder) add(name string, role Role) int {
	b.plan.Nodes = append(b.plan.Nodes, Node{Name: name, Role: role})
	return len(b.plan.Nodes) - 1
}

// host adds a host. The names are A to Z, then H27, H28 and so on.
func (b *builder) host() int {
	b.hosts++
	name := "H" + strconv.Itoa(b.hosts)
	if b.hosts <= 26 {
		name = string(rune('A' + b.hosts - 1))
	}
	return b.add(name, Host)
}

// routers adds routers R1 to Rn and returns their indexes.
func (b *builder) routers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = b.add("R"+strconv.Itoa(i+1), Router)
	}
	return list
}

func (b *builder) link(x, y int) {
	b.plan.Links = append(b.plan.Links, Link{A: x, B: y})
}

func line(b *builder, n []int) {
	first := b.host()
	before := first
	for _, r := range b.routers(n[0] - 2) {
		b.link(before, r)
		before = r
	}
	b.link(before, b.host())
}

func ring(b *builder, n []int) {
	first, last := b.host(), b.host()
	r := b.routers(n[0])
	b.link(first, r[0])
	for i := range r {
		b.link(r[i], r[(i+1)%len(r)])
	}
	b.link(r[len(r)/2], last)
}

func grid(b *builder, n []int) {
	rows, columns := n[0], n[1]
	first, last := b.host(), b.host()
	at := func(row, column int) int { return last + 1 + row*columns + column }
	for row := range rows {
		for column := range columns {
			b.add(fmt.Sprintf("R%d-%d", row+1, column+1), Router)
		}
	}
	b.link(first, at(0, 0))
	for row := range rows {
		for column := range columns {
			if column+1 < columns {
				b.link(at(row, column), at(row, column+1))
			}
			if row+1 < rows {
				b.link(at(row, column), at(row+1, column))
			}
		}
	}
	b.link(at(rows-1, columns-1), last)
}

func tree(b *builder, n []int) {
	depth, fanout := n[0], n[1]
	level := b.routers(1)
	routers := 1
	for d := 1; d < depth && len(b.plan.Nodes) <= MaxNodes; d++ {
		var next []int
		for _, parent := range level {
			for range fanout {
				routers++
				child := b.add("R"+strconv.Itoa(routers), Router)
				b.link(parent, child)
				next = append(next, child)
			}
		}
		level = next
	}
	for _, parent := range level {
		for i := 0; i < fanout && len(b.plan.Nodes) <= MaxNodes; i++ {
			b.link(parent, b.host())
		}
	}
}

func star(b *builder, n []int) {
	middle := b.routers(1)[0]
	for range n[0] {
		b.link(middle, b.host())
	}
}

// scatter joins routers at random. It first joins each router to an earlier one, so that all are
// connected, then adds links up to the wanted number, by default 1.5 times those of a tree. Host A
// is at the first router, and B at a router as far from it as possible.
func scatter(b *builder, n []int, seed uint64) {
	first, last := b.host(), b.host()
	r := b.routers(n[0])
	rng := rand.New(rand.NewPCG(seed, seed))
	joined := map[[2]int]bool{}
	join := func(x, y int) {
		x, y = min(x, y), max(x, y)
		if x != y && !joined[[2]int{x, y}] {
			joined[[2]int{x, y}] = true
			b.link(r[x], r[y])
		}
	}
	b.link(first, r[0])
	for i := 1; i < len(r); i++ {
		join(i, rng.IntN(i))
	}
	want := n[1]
	if want < 0 {
		want = len(r) - 1 + len(r)/2
	}
	for tries := 0; len(joined) < want && tries < 64*want; tries++ {
		join(rng.IntN(len(r)), rng.IntN(len(r)))
	}
	hops := distances(len(b.plan.Nodes), b.plan.Links, first)
	far := r[0]
	for _, i := range r {
		if hops[i] > hops[far] {
			far = i
		}
	}
	b.link(far, last)
}

// Furthest returns two nodes with the greatest distance in the plan, and the number of routers
// between them. RIP's longest path has 15 hops (RFC 2453 §3.4).
func (p *Plan) Furthest() (a, b string, routers int) {
	most := -1
	for i := range p.Nodes {
		for j, hops := range distances(len(p.Nodes), p.Links, i) {
			if hops > most {
				most, a, b = hops, p.Nodes[i].Name, p.Nodes[j].Name
			}
		}
	}
	return a, b, max(most-1, 0)
}

// distances returns the number of links from one node to each of n nodes; -1 for nodes that it
// cannot reach.
func distances(n int, links []Link, from int) []int {
	next := make([][]int, n)
	for _, l := range links {
		next[l.A] = append(next[l.A], l.B)
		next[l.B] = append(next[l.B], l.A)
	}
	hops := make([]int, n)
	for i := range hops {
		hops[i] = -1
	}
	hops[from] = 0
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for _, to := range next[queue[0]] {
			if hops[to] < 0 {
				hops[to] = hops[queue[0]] + 1
				queue = append(queue, to)
			}
		}
	}
	return hops
}
