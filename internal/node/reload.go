package node

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// rereading is what a node knows of its file.
type rereading struct {
	reload sync.Mutex  // one at a time
	file   *lnx.Config // as it was read last; under reload
}

// keepFile makes the node's configuration its own, which a Reload changes.
func (n *Node) keepFile() {
	n.file = n.cfg.LNX
	own := *n.file
	own.Interfaces = slices.Clone(own.Interfaces)
	n.cfg.LNX = &own
}

// Change is one thing that a file says otherwise than before.
type Change struct {
	Text string
	Do   func() error
	Undo func() // nil: nothing has to be
}

// Reload carries out control.Reload. More are changes that are made before the node's own, of what
// others keep by the file; nil: nobody does. All are made, or none.
func (n *Node) Reload(
	r control.Reload, more func(was, now *lnx.Config) []Change,
) (control.Reloaded, error) {
	done := control.Reloaded{Changes: []string{}, Restart: []string{}}
	if n.cfg.Reread == nil {
		return done, fmt.Errorf("reload: %w: this node is of no file", control.ErrUnsupported)
	}
	n.reload.Lock()
	defer n.reload.Unlock()
	now, err := n.cfg.Reread()
	if err == nil {
		err = Check(now).Err()
	}
	if err != nil {
		return done, fmt.Errorf("%w: %w", control.ErrUsage, err)
	}
	was := n.file
	done.Restart = append(done.Restart, onlyAnew(was, now)...)
	changes := n.changes(was, now)
	if more != nil {
		changes = append(more(was, now), changes...)
	}
	for _, c := range changes {
		done.Changes = append(done.Changes, c.Text)
	}
	switch {
	case r.Try:
		return done, nil
	case len(done.Restart) > 0:
		return done, fmt.Errorf("reload: %w: only a new node can be that: %s",
			control.ErrUnsupported, strings.Join(done.Restart, "; "))
	}
	for i, c := range changes {
		if err := c.Do(); err != nil {
			for _, before := range slices.Backward(changes[:i]) {
				if before.Undo != nil {
					before.Undo()
				}
			}
			return done, fmt.Errorf("reload: %s: %w", c.Text, err)
		}
	}
	n.file = now
	return done, controlError(n.call(func(clock.Time) { n.cfg.LNX.RIP = now.RIP }))
}

// onlyAnew tells what a running node cannot become.
func onlyAnew(was, now *lnx.Config) (list []string) {
	differ := func(what string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			list = append(list, fmt.Sprintf("%s: was %v, is %v", what, a, b))
		}
	}
	differ("routing", was.Routing, now.Routing)
	differ("forwarding", was.Forwarding, now.Forwarding)
	differ("a shared socket", was.SharedSocket, now.SharedSocket)
	differ("tcp profile", was.TCP.Profile, now.TCP.Profile)
	for i := range was.Interfaces {
		a := &was.Interfaces[i]
		b, ok := now.Interface(a.Name)
		if !ok {
			list = append(list, "interface "+a.Name+" is no more")
			continue
		}
		differ("the address of "+a.Name, a.Addr, b.Addr)
		differ("the UDP address of "+a.Name, a.UDP, b.UDP)
		differ("the MTU of "+a.Name, a.MTU, b.MTU)
		differ("the device of "+a.Name, a.Tun, b.Tun)
		differ("the neighbors on "+a.Name, neighborsOn(was, a.Name), neighborsOn(now, a.Name))
	}
	for i := range now.Interfaces {
		if _, ok := was.Interface(now.Interfaces[i].Name); !ok {
			list = append(list, "interface "+now.Interfaces[i].Name+" is new")
		}
	}
	return list
}

// neighborsOn are those of an interface, as a file has them.
func neighborsOn(c *lnx.Config, iface string) (list []string) {
	for _, nb := range c.Neighbors {
		if nb.Iface == iface {
			list = append(list, nb.Addr.String()+" at "+nb.UDP.String())
		}
	}
	slices.Sort(list)
	return list
}

// changes is what has to be done to a running node. What can fail comes first.
func (n *Node) changes(was, now *lnx.Config) (list []Change) {
	list = append(list, n.knobChanges(was, now)...)
	list = append(list, n.routeChanges(was, now)...)
	list = append(list, n.linkChanges(was, now)...)
	return append(list, n.ripChanges(was, now)...)
}

// knobChanges are the settings of TCP, ICMP and IP.
func (n *Node) knobChanges(was, now *lnx.Config) (list []Change) {
	if was.TCP != now.TCP {
		list = append(list, n.knobChange("tcp", func(k *knobs) {
			k.RTOMin, k.RTOMax, k.OptionsOff = now.TCP.RTOMin, now.TCP.RTOMax, now.TCP.OptionsOff
		}))
	}
	if was.ICMP != now.ICMP || was.IP != now.IP {
		list = append(list, n.knobChange("ip and icmp", func(k *knobs) {
			k.stack = internetKnobs(now)
		}))
	}
	return list
}

func (n *Node) knobChange(what string, turn func(*knobs)) Change {
	var before knobs
	set := func(turn func(*knobs)) (err error) {
		callErr := n.call(func(at clock.Time) {
			k := n.knobs()
			before = k
			turn(&k)
			err = n.setKnobs(at, k)
		})
		return firstError(callErr, err)
	}
	return Change{
		Text: what + " settings",
		Do:   func() error { return set(turn) },
		Undo: func() {
			old := before
			_ = set(func(k *knobs) { *k = old }) // they stood so a moment ago
		},
	}
}

// routeChanges are the static routes.
func (n *Node) routeChanges(was, now *lnx.Config) (list []Change) {
	routes := func(c *lnx.Config) (m map[string]control.AddRoute, order []string) {
		m = map[string]control.AddRoute{}
		for _, r := range c.Routes {
			if c.Routing == lnx.RoutingNone {
				break
			}
			text := fmt.Sprintf("route %v via %v %s metric %d", r.Prefix, r.Via, r.Kind, r.Metric)
			if !r.Via.IsValid() {
				text = fmt.Sprintf("route %v %s", r.Prefix, r.Kind)
			}
			m[text] = control.AddRoute{
				Prefix: r.Prefix, Via: r.Via, Metric: r.Metric, Kind: control.RouteKind(r.Kind),
			}
			order = append(order, text)
		}
		return m, order
	}
	before, old := routes(was)
	after, fresh := routes(now)
	gone := func(r control.AddRoute) error {
		err := n.delRoute(control.DelRoute{Prefix: r.Prefix, Via: r.Via})
		if errors.Is(err, control.ErrNoSuchRoute) {
			return nil // somebody has taken it away by hand
		}
		return err
	}
	for _, text := range old {
		if _, stays := after[text]; !stays {
			list = append(list, Change{
				Text: "no more: " + text,
				Do:   func() error { return gone(before[text]) },
				Undo: func() { _ = n.addRoute(before[text]) }, // as it was
			})
		}
	}
	for _, text := range fresh {
		if _, there := before[text]; !there {
			list = append(list, Change{
				Text: text,
				Do: func() error {
					err := n.addRoute(after[text])
					if errors.Is(err, control.ErrRouteExists) {
						return nil // somebody has added it by hand
					}
					return err
				},
				Undo: func() { _ = gone(after[text]) }, // as it was
			})
		}
	}
	return list
}

// linkChanges are what links do to packets.
func (n *Node) linkChanges(was, now *lnx.Config) (list []Change) {
	for i := range n.cfg.LNX.Interfaces {
		name := n.cfg.LNX.Interfaces[i].Name
		a, b := manners(was, name), manners(now, name)
		if reflect.DeepEqual(a, b) {
			continue
		}
		set := func(c *lnx.Config) (err error) {
			both, err := mannersOf(c, name)
			if err != nil {
				return err
			}
			callErr := n.call(func(clock.Time) { err = n.impair(n.ifaceDevice[i], i, both) })
			return firstError(callErr, err)
		}
		list = append(list, Change{
			Text: "link " + name + ": " + strings.Join(b[:], " in, ") + " out",
			Do:   func() error { return set(now) },
			Undo: func() { _ = set(was) }, // as it was
		})
	}
	return list
}

// manners are what a file says that an interface does to packets that come and that go.
func manners(c *lnx.Config, name string) (text [2]string) {
	both, err := mannersOf(c, name)
	for way := range both {
		if err == nil {
			text[1-way] = both[way].String()
			if both[way].Seed != 0 {
				text[1-way] += fmt.Sprintf(" seed %d", both[way].Seed)
			}
		}
	}
	return text
}

// mannersOf is the same as configurations. The words were judged when the file was read.
func mannersOf(c *lnx.Config, name string) (both [2]*netem.Config, err error) {
	both = [2]*netem.Config{{}, {}}
	if f, ok := c.Interface(name); ok && f.Impair != (lnx.Impairments{}) {
		cfg := impairment(&f.Impair)
		both = [2]*netem.Config{&cfg, &cfg}
	}
	for i := range c.Impair {
		l := &c.Impair[i]
		if l.Iface != name {
			continue
		}
		cfg, err := parseImpairment(l.Text())
		if err != nil {
			return both, err
		}
		for way, set := range pick(control.Way(l.Way), &cfg) {
			if set != nil {
				both[way] = set
			}
		}
	}
	return both, nil
}

// ripChanges begin RIP anew where it is spoken otherwise; where only its times are others, these
// are turned.
func (n *Node) ripChanges(was, now *lnx.Config) []Change {
	if was.Routing != lnx.RoutingRIP && was.Routing != lnx.RoutingRIP2 {
		return nil
	}
	same := reflect.DeepEqual(was.RIP, now.RIP)
	for i := range was.Interfaces {
		f, ok := now.Interface(was.Interfaces[i].Name)
		same = same && ok && reflect.DeepEqual(was.Interfaces[i].RIP, f.RIP)
	}
	if same {
		return nil
	}
	return []Change{{Text: "rip", Do: func() error {
		var err error
		callErr := n.call(func(at clock.Time) {
			for i := range n.cfg.LNX.Interfaces {
				if f, ok := now.Interface(n.cfg.LNX.Interfaces[i].Name); ok {
					n.cfg.LNX.Interfaces[i].RIP = f.RIP
				}
			}
			n.cfg.LNX.RIP = now.RIP
			var cfg stack.Config
			n.setRIP(&cfg, netem.Streams(n.seedFor(&netem.Config{}))("rip"))
			err = n.stack.RestartRIP(at, cfg)
		})
		return firstError(callErr, err)
	}}}
}
