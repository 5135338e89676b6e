package node

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/settings"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// rereading is what a node knows of its file.
type rereading struct {
	reload   sync.Mutex  // one at a time
	file     *lnx.Config // as it was read last; under reload
	released released
	slots    []string // the names of interfaces by number, also of those that are no more
	shown    atomic.Pointer[lnx.Config]
}

// keepFile makes the node's configuration its own, which a Reload changes.
func (n *Node) keepFile() {
	n.file = n.cfg.LNX
	own, names := n.numbered(n.cfg.LNX)
	n.slots = names
	n.become(own)
}

// Change is one thing that a file says otherwise than before.
type Change struct {
	Text string
	Do   func() error // a second time it does nothing
	Undo func()       // nil: nothing has to be
	// Frees is set where a port of the machine is given up by it.
	Frees bool
}

// turn is a change that the loop carries out, between two packets.
type turn struct {
	text string // empty: it belongs to the one before
	do   func(now clock.Time) error
	undo func(now clock.Time) // nil: nothing before it can fail
}

// reloading is a new file on its way.
type reloading struct {
	node     *Node
	was, now *lnx.Config
	wiring   *wiring
	more     []Change // others', before the loop's
	turns    []turn
	done     control.Reloaded
}

// Reload carries out control.Reload. More are changes that are made before the node's own, of what
// others keep by the file; nil: nobody does. All are made, or none.
func (n *Node) Reload(
	r control.Reload, more func(was, now *lnx.Config) []Change,
) (control.Reloaded, error) {
	if n.cfg.Reread == nil {
		return nothingReloaded(), fmt.Errorf("reload: %w: this node is of no file",
			control.ErrUnsupported)
	}
	n.reload.Lock()
	defer n.reload.Unlock()
	if r.Release && !r.Undo {
		n.released.before = nil // until it has begun
	}
	now, err := n.wanted(r)
	if err != nil {
		return nothingReloaded(), fmt.Errorf("%w: %w", control.ErrUsage, err)
	}
	l := n.reloadingTo(now, more)
	switch {
	case r.Release:
		return l.release(r)
	case r.Try:
		l.list()
		l.done.Ended = append(l.done.Ended, l.ending()...)
		return l.done, nil
	}
	return l.apply()
}

// wanted is the file that a request is about.
func (n *Node) wanted(r control.Reload) (*lnx.Config, error) {
	switch {
	case (r.Try && (r.Release || r.Undo)) || (r.All && (!r.Release || r.Undo)):
		return nil, errors.New("try stands alone, and all with release")
	case r.Undo && n.released.before == nil:
		return nil, errors.New("there is nothing to undo")
	case r.Undo:
		return n.released.before, nil
	case r.All:
		return &lnx.Config{}, nil
	}
	now, err := n.cfg.Reread()
	if err == nil {
		err = Check(now).Err()
	}
	return now, err
}

func nothingReloaded() control.Reloaded {
	return control.Reloaded{Changes: []string{}, Restart: []string{}, Ended: []string{}}
}

func (n *Node) reloadingTo(
	now *lnx.Config, more func(was, now *lnx.Config) []Change,
) *reloading {
	l := &reloading{node: n, was: n.file, now: now, done: nothingReloaded()}
	if more != nil {
		l.more = more(l.was, now)
	}
	l.done.Restart = append(l.done.Restart, onlyAnew(l.was, now)...)
	return l
}

// apply has the node be as the file says, all or nothing.
func (l *reloading) apply() (control.Reloaded, error) {
	n := l.node
	if len(l.done.Restart) > 0 {
		l.list()
		l.done.Ended = append(l.done.Ended, l.ending()...)
		return l.done, fmt.Errorf("reload: %w: only a new node can be that: %s",
			control.ErrUnsupported, strings.Join(l.done.Restart, "; "))
	}
	err := n.rehearse(l.now)
	if err != nil {
		return nothingReloaded(), fmt.Errorf("reload: %w: %w", control.ErrUsage, err)
	}
	if l.wiring, err = n.wire(l.now); err != nil {
		return nothingReloaded(), fmt.Errorf("reload: %w", err)
	}
	l.list()
	if err := l.carryOut(); err != nil {
		return l.done, err
	}
	n.regained(l.now)
	n.file = l.now
	return l.done, nil
}

// rehearse makes the stack that a new node would have of a file, and forgets it: what that refuses
// is told before anything changes.
func (n *Node) rehearse(c *lnx.Config) error {
	trial := &Node{cfg: n.cfg, start: n.start}
	trial.cfg.LNX = c
	_, err := stack.New(n.now(), trial.stackConfig())
	return err
}

// list finds out what is to be done. What can fail comes first.
func (l *reloading) list() {
	n := l.node
	l.turns = slices.Concat(n.knobTurns(l.was, l.now), n.forwardingTurn(l.was, l.now),
		n.oldRoutes(l.was, l.now), l.wires(), n.newRoutes(l.was, l.now),
		n.linkTurns(l.was, l.now), n.ripTurns(l.was, l.now))
	for _, c := range l.more {
		l.done.Changes = append(l.done.Changes, c.Text)
	}
	for _, t := range l.turns {
		if t.text != "" {
			l.done.Changes = append(l.done.Changes, t.text)
		}
	}
}

// carryOut does it, all or nothing.
func (l *reloading) carryOut() error {
	failed := func(text string, err error) error {
		l.wiring.abandon()
		return fmt.Errorf("reload: %s: %w", text, err)
	}
	for i, c := range l.more {
		if err := c.Do(); err != nil {
			undo(l.more[:i])
			return failed(c.Text, err)
		}
	}
	var what string
	var err error
	callErr := l.node.call(func(now clock.Time) { what, err = l.turnAll(now) })
	if err = ControlError(firstError(callErr, err)); err != nil {
		undo(l.more)
		return failed(what, err)
	}
	return nil
}

func undo(done []Change) {
	for _, before := range slices.Backward(done) {
		if before.Undo != nil {
			before.Undo()
		}
	}
}

// turnAll is the loop's part. It tells what failed, after it has been undone.
func (l *reloading) turnAll(now clock.Time) (what string, err error) {
	before := l.node.cfg.LNX
	for i, t := range l.turns {
		if err := t.do(now); err != nil {
			for _, t := range slices.Backward(l.turns[:i]) {
				if t.undo != nil {
					t.undo(now)
				}
			}
			l.node.become(before)
			return t.text, err
		}
	}
	l.node.become(l.wiring.file)
	l.node.drain(now)
	return "", nil
}

// onlyAnew tells what a running node cannot become.
func onlyAnew(was, now *lnx.Config) (list []string) {
	differ := func(what string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			list = append(list, fmt.Sprintf("%s: was %v, is %v", what, a, b))
		}
	}
	differ("routing", was.Routing, now.Routing)
	differ("a shared socket", was.SharedSocket, now.SharedSocket)
	differ("tcp profile", cmp.Or(was.TCP.Profile, "none"), cmp.Or(now.TCP.Profile, "none"))
	for i := range was.Interfaces {
		a := &was.Interfaces[i]
		b, ok := now.Interface(a.Name)
		if !ok {
			list = append(list, renamed(a, now)...)
			continue
		}
		if a.Tun == nil && b.Tun == nil {
			continue
		}
		differ("the device of "+a.Name, deviceText(a), deviceText(b))
		if a.Tun != nil && b.Tun != nil { // the kernel's end goes with it
			differ("the address of "+a.Name, a.Addr, b.Addr)
			differ("the MTU of "+a.Name, mtuOf(a), mtuOf(b))
		}
	}
	for i := range now.Doors {
		d := &now.Doors[i]
		mine := func(f lnx.Interface) bool { return f.Addr.Addr() == d.Addr }
		if d.Kind == lnx.DoorSplice && slices.ContainsFunc(now.Interfaces, mine) &&
			!slices.ContainsFunc(was.Interfaces, mine) {
			list = append(list, "a splice of an interface that is new")
		}
	}
	return list
}

// renamed tells where the TUN device of an interface that is no more is another's: it would have to
// be closed before it is opened.
func renamed(a *lnx.Interface, now *lnx.Config) (list []string) {
	for i := range now.Interfaces {
		if b := &now.Interfaces[i]; a.Tun != nil && underneath(b) == underneath(a) {
			list = append(list, fmt.Sprintf("the interface of %s: was %s, is %s", underneath(a),
				a.Name, b.Name))
		}
	}
	return list
}

// deviceText is what an interface stands on, with what the file says of the kernel's end.
func deviceText(f *lnx.Interface) string {
	text := underneath(f)
	if f.Tun == nil || !f.Tun.Kernel.IsValid() {
		return text
	}
	text += " kernel " + f.Tun.Kernel.String()
	for i, r := range f.Tun.Routes {
		if i == 0 {
			text += " routes"
		}
		text += " " + r.String()
	}
	return text
}

// knobTurns are the settings of TCP, ICMP and IP.
func (n *Node) knobTurns(was, now *lnx.Config) (list []turn) {
	if was.TCP != now.TCP {
		list = append(list, n.knobTurn("tcp", func(k *settings.Knobs) {
			k.RTOMin, k.RTOMax, k.OptionsOff = now.TCP.RTOMin, now.TCP.RTOMax, now.TCP.OptionsOff
			k.NoResets = now.TCP.NoResets
		}))
	}
	if was.ICMP != now.ICMP || was.IP != now.IP {
		list = append(list, n.knobTurn("ip and icmp", func(k *settings.Knobs) {
			k.Stack = internetKnobs(now)
		}))
	}
	return list
}

func (n *Node) knobTurn(what string, set func(*settings.Knobs)) turn {
	var before settings.Knobs
	return turn{
		text: what + " settings",
		do: func(now clock.Time) error {
			before = n.Knobs()
			k := before
			set(&k)
			return n.SetKnobs(now, k)
		},
		undo: func(now clock.Time) { _ = n.SetKnobs(now, before) }, // they stood so a moment ago
	}
}

// oldRoutes are the static routes that a file has no more.
func (n *Node) oldRoutes(was, now *lnx.Config) (list []turn) {
	after := staticRoutes(now)
	for _, r := range staticRoutes(was) {
		if !slices.Contains(after, r) {
			list = append(list, turn{
				text: "no more: " + routeText(&r),
				do: func(now clock.Time) error {
					err := n.stack.DelRoute(now, r.Prefix, r.Via)
					if errors.Is(err, stack.ErrNoSuchRoute) {
						return nil // somebody has taken it away by hand
					}
					return NetError(err)
				},
				undo: func(now clock.Time) { _ = n.stack.AddRoute(now, r) }, // as it was
			})
		}
	}
	return list
}

// newRoutes are those that it did not have.
func (n *Node) newRoutes(was, now *lnx.Config) (list []turn) {
	before := staticRoutes(was)
	for _, r := range staticRoutes(now) {
		if !slices.Contains(before, r) {
			list = append(list, turn{
				text: routeText(&r),
				do: func(now clock.Time) error {
					err := n.stack.AddRoute(now, r)
					if errors.Is(err, stack.ErrRouteExists) {
						return nil // somebody has added it by hand
					}
					return NetError(err)
				},
			})
		}
	}
	return list
}

// staticRoutes are those of a file.
func staticRoutes(c *lnx.Config) (list []stack.Route) {
	for _, r := range c.Routes {
		if c.Routing == lnx.RoutingNone {
			break
		}
		list = append(list, stack.Route{
			Prefix: r.Prefix, Via: r.Via, Metric: r.Metric, Kind: RouteKinds[r.Kind],
		})
	}
	return list
}

func routeText(r *stack.Route) string {
	if r.Kind != ip.Forwarded {
		return fmt.Sprintf("route %v %v", r.Prefix, r.Kind)
	}
	return fmt.Sprintf("route %v via %v metric %d", r.Prefix, r.Via, r.Metric)
}

// linkTurns are what links do to packets.
func (n *Node) linkTurns(was, now *lnx.Config) (list []turn) {
	for i := range now.Interfaces {
		name := now.Interfaces[i].Name
		a, b := manners(was, name), manners(now, name)
		if reflect.DeepEqual(a, b) {
			continue
		}
		list = append(list, turn{
			text: "link " + name + ": " + strings.Join(b[:], " in, ") + " out",
			do: func(clock.Time) error {
				both, err := mannersOf(now, name)
				if err != nil {
					return err
				}
				i, err := n.Face(name)
				if err != nil {
					return err
				}
				return n.impair(n.ifaceDevice[i], i, both)
			},
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
		cfg, err := ParseImpairment(l.Text(), files.Machine())
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

// forwardingTurn makes a host a router, or a router a host.
func (n *Node) forwardingTurn(was, now *lnx.Config) []turn {
	if was.Forwarding == now.Forwarding {
		return nil
	}
	return []turn{{
		text: map[bool]string{true: "forwarding", false: "no more: forwarding"}[now.Forwarding],
		do: func(clock.Time) error {
			n.stack.SetForwarding(now.Forwarding)
			return nil
		},
		undo: func(clock.Time) { n.stack.SetForwarding(was.Forwarding) },
	}}
}

// ripTurns go on with RIP in another configuration.
func (n *Node) ripTurns(was, now *lnx.Config) []turn {
	old, _ := n.numbered(was)
	own, _ := n.numbered(now)
	a, b := n.ripOf(old), n.ripOf(own)
	if a.RIP == nil || b.RIP == nil || reflect.DeepEqual(a, b) {
		return nil
	}
	return []turn{{text: "rip", do: func(at clock.Time) error {
		var cfg stack.Config
		n.setRIP(&cfg, netem.Streams(n.seedFor(&netem.Config{}))("rip"))
		return n.stack.RestartRIP(at, cfg)
	}}}
}

// ripOf is how a file has RIP spoken.
func (n *Node) ripOf(c *lnx.Config) (cfg stack.Config) {
	trial := &Node{cfg: n.cfg}
	trial.cfg.LNX = c
	if trial.setRIP(&cfg, nil); cfg.RIP != nil {
		cfg.RIP.Sequence = 0 // it is the time of day
	}
	return cfg
}
