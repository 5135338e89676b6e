package convergence

import (
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// observer keeps every router's route to every link's network, as reported by the routers, and
// compares it with the right route.
type observer struct {
	net   *network
	peers [][]int16 // router at the other end, by router and interface
	cells []cell    // routes by link and then by router
	want  []uint8   // right costs, in the same order
	wrong int       // number of cells that differ from want

	changes  uint64
	settled  clock.Time // when the last wrong cell became right
	reached  []Step
	phase    clock.Time // start of the phase
	highest  int        // highest cost below Infinity in this phase
	loops    []loop
	found    int           // number of loops in this phase that lasted longer than an instant
	longest  time.Duration // age of the oldest of these loops
	nextMark int
}

// cell is one router's route to one network.
type cell struct {
	learned uint8 // cost of RIP's route; Infinity: no route
	local   bool  // the router is on the network
	via     int16 // next hop of RIP's route, or noRouter
}

const noRouter = -1

// loop is a routing loop of packets to the network of a link.
type loop struct {
	link, member int
	since        clock.Time
}

// Step is a point of a phase's curve.
type Step struct {
	After time.Duration
	Right float64 // share of all routes that are right
}

func newObserver(w *network) *observer {
	v := &observer{net: w, peers: make([][]int16, w.routers)}
	v.cells = make([]cell, w.routers*len(w.links))
	for i := range v.cells {
		v.cells[i] = cell{learned: rip.Infinity, via: noRouter}
	}
	for i, pair := range w.links {
		for end, r := range pair {
			v.peers[r] = append(v.peers[r], int16(pair[1-end])) //nolint:gosec // maxRouters
			v.cells[i*w.routers+r].local = true
		}
	}
	return v
}

func (c *cell) cost() uint8 {
	if c.local {
		return 0
	}
	return c.learned
}

// begin starts a phase. From now on, want has the right routes for the current network.
func (v *observer) begin() {
	v.want = v.net.right()
	v.wrong = 0
	for i := range v.cells {
		if v.cells[i].cost() != v.want[i] {
			v.wrong++
		}
	}
	now := v.net.Now()
	v.phase, v.settled, v.changes = now, now, 0
	v.highest, v.found, v.longest = 0, 0, 0
	v.nextMark, v.reached = 0, v.reached[:0]
	for i := range v.loops {
		v.loops[i].since = now
	}
	v.mark(now)
}

func (v *observer) routeChanged(router int, c rip.Change) {
	at := linkOf(c.Prefix)*v.net.routers + router
	n := v.cells[at]
	if c.Gone {
		n.learned, n.via = rip.Infinity, noRouter
	} else {
		n.learned, n.via = uint8(c.Cost), v.peers[router][c.Iface] //nolint:gosec // RIP's costs
		v.highest = max(v.highest, c.Cost)
	}
	v.set(at, n)
}

// local records whether a link's network is attached to its routers.
func (v *observer) local(link int, up bool) {
	for _, r := range v.net.links[link] {
		at := link*v.net.routers + r
		n := v.cells[at]
		n.local = up
		v.set(at, n)
	}
}

func (v *observer) set(at int, n cell) {
	was := v.cells[at]
	v.cells[at] = n
	now := v.net.Now()
	v.changes++
	if v.want != nil {
		v.countWrong(was.cost() == v.want[at], n.cost() == v.want[at], now)
	}
	link, router := at/v.net.routers, at%v.net.routers
	v.removeEndedLoops(link, now)
	if n.via != noRouter && !n.local && v.inLoop(link, router) && !v.known(link) {
		v.loops = append(v.loops, loop{link, router, now})
	}
}

func (v *observer) countWrong(was, is bool, now clock.Time) {
	switch {
	case was && !is:
		v.wrong++
	case !was && is:
		v.wrong--
		if v.wrong == 0 {
			v.settled = now
		}
	}
	v.mark(now)
}

// marks are the shares that a phase reports.
var marks = [...]float64{0.5, 0.9, 0.99, 1}

func (v *observer) mark(now clock.Time) {
	right := 1 - float64(v.wrong)/float64(len(v.cells))
	for v.nextMark < len(marks) && right >= marks[v.nextMark] {
		v.reached = append(v.reached, Step{now.Sub(v.phase), marks[v.nextMark]})
		v.nextMark++
	}
}

// inLoop reports whether packets from a router to a network return to that router. A broken link
// ends the path.
func (v *observer) inLoop(link, router int) bool {
	row := v.cells[link*v.net.routers : (link+1)*v.net.routers]
	at := router
	for range v.net.routers {
		c := row[at]
		if c.local || c.via == noRouter {
			return false
		}
		if at = int(c.via); at == router {
			return true
		}
	}
	return false // the path leads into a loop of other routers
}

func (v *observer) known(link int) bool {
	return slices.ContainsFunc(v.loops, func(c loop) bool { return c.link == link })
}

// removeEndedLoops removes those recorded loops of a network that no longer exist.
func (v *observer) removeEndedLoops(link int, now clock.Time) {
	for i := 0; i < len(v.loops); i++ {
		c := v.loops[i]
		if c.link != link || v.inLoop(link, c.member) {
			continue
		}
		v.addLoop(now.Sub(c.since))
		last := len(v.loops) - 1
		v.loops[i] = v.loops[last]
		v.loops = v.loops[:last]
		i--
	}
}

func (v *observer) addLoop(d time.Duration) {
	if d > 0 {
		v.found++
		v.longest = max(v.longest, d)
	}
}

// end finishes the phase. Loops that still exist count with their current age.
func (v *observer) end() {
	for _, c := range v.loops {
		v.addLoop(v.net.Now().Sub(c.since))
	}
}
