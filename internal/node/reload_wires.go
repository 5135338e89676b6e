package node

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// wires are the interfaces and neighbors: a line for each that is otherwise, and one turn.
func (l *reloading) wires() (list []turn) {
	for _, text := range wireTexts(l.was, l.now) {
		list = append(list, turn{text: text, do: func(clock.Time) error { return nil }})
	}
	if len(list) == 0 && (l.wiring == nil || len(l.wiring.fresh) == 0) {
		// The file is another nevertheless: what it says is where it stands now.
		return []turn{{do: func(clock.Time) error { l.node.become(l.wiring.file); return nil }}}
	}
	return append(list, turn{do: l.rewire})
}

// rewire ends what loses its address, takes leave of links that are no more, and then has the
// interfaces be what the file says. The loop's.
func (l *reloading) rewire(now clock.Time) error {
	n := l.node
	for _, b := range n.boundTo(n.goneAddrs(l.now)) {
		b.End(now)
		l.done.Ended = append(l.done.Ended, b.Text)
	}
	n.drain(now) // resets, while there is a way
	for i := range n.cfg.LNX.Interfaces {
		f := &n.cfg.LNX.Interfaces[i]
		if _, stays := l.now.Interface(f.Name); f.Name != "" && !stays {
			n.stack.SetUp(now, i, false)
		}
	}
	n.drain(now) // what RIP has to say
	n.become(l.wiring.file)
	return n.rewire(now, l.wiring)
}

// ending tells what a reload would end.
func (l *reloading) ending() (texts []string) {
	n := l.node
	_ = n.call(func(clock.Time) { // one that is closed has nothing to end
		for _, b := range n.boundTo(n.goneAddrs(l.now)) {
			texts = append(texts, b.Text)
		}
	})
	return texts
}

// wireTexts say how the interfaces and neighbors of two files differ.
func wireTexts(was, now *lnx.Config) (list []string) {
	tell := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for i := range was.Interfaces {
		if f := &was.Interfaces[i]; !has(now, f.Name) {
			tell("no more: interface %s %v at %s", f.Name, f.Addr, underneath(f))
		}
	}
	for i := range now.Interfaces {
		f := &now.Interfaces[i]
		a, ok := was.Interface(f.Name)
		if !ok {
			tell("interface %s %v at %s", f.Name, f.Addr, underneath(f))
			continue
		}
		if a.Addr != f.Addr {
			tell("interface %s: address %v, was %v", f.Name, f.Addr, a.Addr)
		}
		if underneath(a) != underneath(f) {
			tell("interface %s: at %s, was at %s", f.Name, underneath(f), underneath(a))
		}
		if mtuOf(a) != mtuOf(f) {
			tell("interface %s: mtu %d, was %d", f.Name, mtuOf(f), mtuOf(a))
		}
	}
	for _, nb := range was.Neighbors {
		if neighborLike(now, &nb) < 0 {
			tell("no more: neighbor %v at %v via %s", nb.Addr, nb.UDP, nb.Iface)
		}
	}
	for _, nb := range now.Neighbors {
		i := neighborLike(was, &nb)
		if i < 0 {
			tell("neighbor %v at %v via %s", nb.Addr, nb.UDP, nb.Iface)
		} else if from := was.Neighbors[i].UDP; from != nb.UDP {
			tell("neighbor %v via %s: at %v, was at %v", nb.Addr, nb.Iface, nb.UDP, from)
		}
	}
	return list
}

// mtuOf is an interface's MTU, with the default for zero.
func mtuOf(f *lnx.Interface) int { return cmp.Or(f.MTU, stack.DefaultMTU) }

func has(c *lnx.Config, name string) bool {
	_, ok := c.Interface(name)
	return ok
}

// neighborLike finds the neighbor of the same address on the same link; -1: there is none.
func neighborLike(c *lnx.Config, nb *lnx.Neighbor) int {
	return slices.IndexFunc(c.Neighbors, func(o lnx.Neighbor) bool {
		return o.Addr == nb.Addr && o.Iface == nb.Iface
	})
}
