package operator

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// wires lists the changes of interfaces and neighbors: a text for each change, and one step that
// makes them all.
func (l *reloading) wires() (list []step) {
	for _, text := range wireTexts(l.was, l.now) {
		nothing := func(*stack.Stack, clock.Time) error { return nil }
		list = append(list, step{text: text, do: nothing})
	}
	if len(list) == 0 && (l.reconfiguration == nil || !l.reconfiguration.Opened()) {
		// At most the positions in the file differ.
		return []step{{do: func(*stack.Stack, clock.Time) error {
			l.node.SetNetwork(l.network)
			return nil
		}}}
	}
	return append(list, step{do: l.reconfigure})
}

// reconfigure ends all users of removed addresses, takes down deleted interfaces, and makes the
// changes. Loop only.
func (l *reloading) reconfigure(s *stack.Stack, now clock.Time) error {
	n := l.node
	for _, b := range n.BoundTo(l.goneAddrs()) {
		b.End(now)
		l.done.Ended = append(l.done.Ended, b.Text)
	}
	n.Devices.Drain(now) // sends resets while the links still exist
	for i, f := range n.Ifaces() {
		if f.Name != "" && !has(l.now, f.Name) {
			s.SetUp(now, i, false)
		}
	}
	n.Devices.Drain(now) // sends the last update of RIP
	n.SetNetwork(l.network)
	l.Reloader.names = l.names
	return n.Devices.Reconfigure(now, l.reconfiguration)
}

// ending lists what a reload would close.
func (l *reloading) ending() (texts []string) {
	_ = l.node.Call(func(*stack.Stack, clock.Time) error { // a closed node has nothing to close
		for _, b := range l.node.BoundTo(l.goneAddrs()) {
			texts = append(texts, b.Text)
		}
		return nil
	})
	return texts
}

// goneAddrs returns the node's addresses that are not in the new file. Loop only.
func (l *reloading) goneAddrs() map[netip.Addr]bool {
	gone := map[netip.Addr]bool{}
	for _, f := range l.node.Ifaces() {
		for _, p := range f.Addrs() {
			gone[p.Addr()] = true
		}
	}
	for i := range l.now.Interfaces {
		for _, p := range l.now.Interfaces[i].Addrs() {
			delete(gone, p.Addr())
		}
	}
	return gone
}

// wireTexts describes the differences between the interfaces and neighbors of two files.
func wireTexts(was, now *lnx.Config) (list []string) {
	tell := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for i := range was.Interfaces {
		if f := &was.Interfaces[i]; !has(now, f.Name) {
			tell("removed: interface %s %s at %s", f.Name, addrsText(f), linkName(f))
		}
	}
	for i := range now.Interfaces {
		f := &now.Interfaces[i]
		a, ok := was.Interface(f.Name)
		if !ok {
			tell("interface %s %s at %s", f.Name, addrsText(f), linkName(f))
			continue
		}
		if addrsText(a) != addrsText(f) {
			tell("interface %s: address %s, was %s", f.Name, addrsText(f), addrsText(a))
		}
		if linkName(a) != linkName(f) {
			tell("interface %s: at %s, was at %s", f.Name, linkName(f),
				linkName(a))
		}
		if mtuOf(a) != mtuOf(f) {
			tell("interface %s: mtu %d, was %d", f.Name, mtuOf(f), mtuOf(a))
		}
	}
	for i := range now.Interfaces {
		name := now.Interfaces[i].Name
		if a, b := natText(was, name), natText(now, name); a != b {
			tell("interface %s: %s, was %s", name, b, a)
		}
	}
	for _, nb := range was.Neighbors {
		if neighborLike(now, &nb) < 0 {
			tell("removed: neighbor %v at %v via %s", nb.Addr, nb.UDP, nb.Iface)
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

// addrsText returns an interface's addresses, separated by spaces.
func addrsText(f *lnx.Interface) string { return strings.Trim(fmt.Sprint(f.Addrs()), "[]") }

func mtuOf(f *lnx.Interface) int { return cmp.Or(f.MTU, stack.DefaultMTU) }

func has(c *lnx.Config, name string) bool {
	_, ok := c.Interface(name)
	return ok
}

// neighborLike returns the index of the neighbor with the same address and interface, or -1.
func neighborLike(c *lnx.Config, nb *lnx.Neighbor) int {
	return slices.IndexFunc(c.Neighbors, func(o lnx.Neighbor) bool {
		return o.Addr == nb.Addr && o.Iface == nb.Iface
	})
}
