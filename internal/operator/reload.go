package operator

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/portforward"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// Reloader changes a running node when its file changes.
type Reloader struct {
	node   *node.Node
	reread func() (*lnx.Config, error)
	more   func(was, now *lnx.Config) []portforward.Change

	mu       sync.Mutex                 // allows one reload at a time
	file     atomic.Pointer[lnx.Config] // current file
	names    []string                   // names of all current and deleted interfaces, by number
	released released
}

// NewReloader returns the Reloader of a node. reread reads the node's file again; it is nil if the
// node has no file. more lists the changes of services, which are made before the node's changes;
// it may be nil.
func NewReloader(
	n *node.Node, file *lnx.Config, reread func() (*lnx.Config, error),
	more func(was, now *lnx.Config) []portforward.Change,
) *Reloader {
	if more == nil {
		more = func(was, now *lnx.Config) []portforward.Change { return nil }
	}
	d := &Reloader{node: n, reread: reread, more: more}
	_, d.names = numbered(file, nil)
	d.file.Store(file)
	return d
}

// File returns the current file. It must not be changed.
func (d *Reloader) File() *lnx.Config { return d.file.Load() }

// step is a change that is made in the loop.
type step struct {
	text string // description; empty if the step belongs to the previous change
	do   func(s *stack.Stack, now clock.Time) error
	undo func(s *stack.Stack, now clock.Time) // undoes the step; nil: no later change can fail
}

// reloading is a reload in progress.
type reloading struct {
	*Reloader
	was, now        *lnx.Config
	names           []string // names of interfaces, by number
	before          *node.Network
	network         *node.Network         // network that the new file describes
	reconfiguration *node.Reconfiguration // prepared change of the interfaces; nil until apply
	others          []portforward.Change  // changes of services, made before steps
	steps           []step
	done            control.Reloaded
}

// Do handles control.Reload: it lists the changes, releases ports, or makes all changes or none.
func (d *Reloader) Do(r control.Reload) (control.Reloaded, error) {
	if d.reread == nil {
		return nothingReloaded(), fmt.Errorf("reload: %w: this node was not started from a file",
			control.ErrUnsupported)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Release && !r.Undo {
		d.released.before = nil // nil until the first step has begun
	}
	now, err := d.wanted(r)
	if err != nil {
		return nothingReloaded(), fmt.Errorf("%w: %w", control.ErrUsage, err)
	}
	l, err := d.to(now)
	if err != nil {
		return nothingReloaded(), fmt.Errorf("%w: %w", control.ErrUsage, err)
	}
	l.others = d.more(l.was, now)
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

// wanted returns the file that a request selects.
func (d *Reloader) wanted(r control.Reload) (*lnx.Config, error) {
	switch {
	case (r.Try && (r.Release || r.Undo)) || (r.All && (!r.Release || r.Undo)):
		return nil, errors.New("try cannot be used with release or undo; all needs release and " +
			"cannot be used with undo")
	case r.Undo && d.released.before == nil:
		return nil, errors.New("no change to undo")
	case r.Undo:
		return d.released.before, nil
	case r.All:
		return &lnx.Config{}, nil
	}
	return d.reread()
}

func nothingReloaded() control.Reloaded {
	return control.Reloaded{Changes: []string{}, Restart: []string{}, Ended: []string{}}
}

func (d *Reloader) to(now *lnx.Config) (*reloading, error) {
	l := &reloading{
		Reloader: d, was: d.File(), now: now, before: d.node.Network(), done: nothingReloaded(),
	}
	l.done.Restart = append(l.done.Restart, restartChanges(l.was, now)...)
	own, names := numbered(now, d.names)
	network, err := Network(own)
	l.names, l.network = names, &network // allocated apart from l, which the node must not keep
	return l, err
}

// apply makes all changes or none.
func (l *reloading) apply() (control.Reloaded, error) {
	if len(l.done.Restart) > 0 {
		l.list()
		l.done.Ended = append(l.done.Ended, l.ending()...)
		return l.done, fmt.Errorf("reload: %w: restart the node for these changes: %s",
			control.ErrUnsupported, strings.Join(l.done.Restart, "; "))
	}
	anew, err := Network(l.now)
	if err == nil {
		err = l.node.CheckNetwork(&anew)
	}
	if err != nil {
		return nothingReloaded(), fmt.Errorf("reload: %w: %w", control.ErrUsage, err)
	}
	if l.reconfiguration, err = l.node.Devices.Prepare(l.network, l.released.faces); err != nil {
		return nothingReloaded(), fmt.Errorf("reload: %w", withPosition(l.now, err))
	}
	l.list()
	if err := l.applyAll(); err != nil {
		return l.done, err
	}
	l.regained(l.now)
	l.file.Store(l.now)
	return l.done, nil
}

// list lists the changes. Changes that can fail come first.
func (l *reloading) list() {
	l.steps = slices.Concat(l.knobSteps(), l.forwardingStep(), l.oldRoutes(), l.wires(),
		l.newRoutes(), l.linkSteps(), l.ripSteps())
	for _, c := range l.others {
		l.done.Changes = append(l.done.Changes, c.Text)
	}
	for _, t := range l.steps {
		if t.text != "" {
			l.done.Changes = append(l.done.Changes, t.text)
		}
	}
}

// applyAll makes all changes or none.
func (l *reloading) applyAll() error {
	failed := func(text string, err error) error {
		l.reconfiguration.Abandon()
		return fmt.Errorf("reload: %s: %w", text, err)
	}
	for i, c := range l.others {
		if err := c.Do(); err != nil {
			undo(l.others[:i])
			return failed(c.Text, err)
		}
	}
	var what string
	err := l.node.Ask(func(s *stack.Stack, now clock.Time) (err error) {
		what, err = l.runSteps(s, now)
		return err
	})
	if err != nil {
		undo(l.others)
		return failed(what, err)
	}
	return nil
}

func undo(done []portforward.Change) {
	for _, before := range slices.Backward(done) {
		if before.Undo != nil {
			before.Undo()
		}
	}
}

// runSteps makes the changes that run in the node's loop. If a change fails, runSteps undoes the
// earlier ones and returns the text of the failed change.
func (l *reloading) runSteps(s *stack.Stack, now clock.Time) (what string, err error) {
	for i, t := range l.steps {
		if err := t.do(s, now); err != nil {
			for _, t := range slices.Backward(l.steps[:i]) {
				if t.undo != nil {
					t.undo(s, now)
				}
			}
			l.node.SetNetwork(l.before)
			return t.text, err
		}
	}
	l.node.SetNetwork(l.network)
	l.node.Devices.Drain(now)
	return "", nil
}

// restartChanges lists the changes that need a restart of the node.
func restartChanges(was, now *lnx.Config) (list []string) {
	differ := func(what string, a, b any) {
		if !reflect.DeepEqual(a, b) {
			list = append(list, fmt.Sprintf("%s: was %v, is %v", what, a, b))
		}
	}
	differ("routing", was.Routing, now.Routing)
	if was.Routing == now.Routing {
		before4, before6 := dialects(was)
		after4, after6 := dialects(now)
		differ("RIP in IPv4", before4, after4)
		differ("RIP in IPv6", before6, after6)
	}
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
		differ("the device of "+a.Name, linkName(a)+a.Tun.End(), linkName(b)+b.Tun.End())
		if a.Tun != nil && b.Tun != nil { // the kernel's end uses these settings, too
			differ("the address of "+a.Name, addrsText(a), addrsText(b))
			differ("the MTU of "+a.Name, mtuOf(a), mtuOf(b))
			differ("address auto of "+a.Name, a.Tun.Auto, b.Tun.Auto)
			differ("advertise of "+a.Name, a.Tun.Advertise, b.Tun.Advertise)
		}
	}
	for i := range now.Forwards {
		d := &now.Forwards[i]
		mine := func(f lnx.Interface) bool { return f.Has(d.Addr) }
		if d.Kind == lnx.Splice && slices.ContainsFunc(now.Interfaces, mine) &&
			!slices.ContainsFunc(was.Interfaces, mine) {
			list = append(list, "a splice of a new interface's address")
		}
	}
	return list
}

// renamed reports that another interface takes over the TUN device of a deleted interface. The
// device would have to be closed before it is opened.
func renamed(a *lnx.Interface, now *lnx.Config) (list []string) {
	for i := range now.Interfaces {
		if b := &now.Interfaces[i]; a.Tun != nil && linkName(b) == linkName(a) {
			list = append(list, fmt.Sprintf("the interface of %s: was %s, is %s",
				linkName(a), a.Name, b.Name))
		}
	}
	return list
}

// knobSteps lists the changes of the settings of TCP, ICMP and IP.
func (l *reloading) knobSteps() (list []step) {
	was, now := l.was, l.now
	if before, after := transport(was).Knobs, transport(now).Knobs; before != after {
		list = append(list, l.knobStep("tcp", func(k *node.Knobs) {
			setChanged(reflect.ValueOf(&k.Knobs).Elem(), reflect.ValueOf(before),
				reflect.ValueOf(after))
		}))
	}
	if was.ICMP != now.ICMP || was.IP != now.IP {
		list = append(list, l.knobStep("ip and icmp", func(k *node.Knobs) {
			k.Stack = internetKnobs(now)
		}))
	}
	return list
}

// setChanged copies a field of now into to if it differs from the field of was. All other fields
// of to keep their values, which a command may have set.
func setChanged(to, was, now reflect.Value) {
	if to.Kind() == reflect.Struct {
		for i := range to.NumField() {
			setChanged(to.Field(i), was.Field(i), now.Field(i))
		}
	} else if !was.Equal(now) {
		to.Set(now)
	}
}

func (l *reloading) knobStep(what string, set func(*node.Knobs)) step {
	var before node.Knobs
	return step{
		text: what + " settings",
		do: func(_ *stack.Stack, now clock.Time) error {
			before = l.node.Knobs()
			k := before
			set(&k)
			return l.node.SetKnobs(now, k)
		},
		undo: func(_ *stack.Stack, now clock.Time) {
			_ = l.node.SetKnobs(now, before) // the old settings are valid
		},
	}
}

func (l *reloading) oldRoutes() (list []step) {
	after := staticRoutes(l.now)
	for _, r := range staticRoutes(l.was) {
		if !slices.Contains(after, r) {
			list = append(list, step{
				text: "removed: " + routeText(&r),
				do: func(s *stack.Stack, now clock.Time) error {
					err := s.Routing().Remove(now, r.Prefix, r.Via)
					if errors.Is(err, stack.ErrNoSuchRoute) {
						return nil // a command has already removed the route
					}
					return err
				},
				undo: func(s *stack.Stack, now clock.Time) { _ = s.Routing().Add(now, r) },
			})
		}
	}
	return list
}

func (l *reloading) newRoutes() (list []step) {
	before := staticRoutes(l.was)
	for _, r := range staticRoutes(l.now) {
		if !slices.Contains(before, r) {
			list = append(list, step{
				text: routeText(&r),
				do: func(s *stack.Stack, now clock.Time) error {
					err := s.Routing().Add(now, r)
					if errors.Is(err, stack.ErrRouteExists) {
						return nil // a command has already added the route
					}
					return err
				},
			})
		}
	}
	return list
}

func staticRoutes(c *lnx.Config) (list []stack.Route) {
	for _, r := range c.Routes {
		if c.Routing == lnx.RoutingNone {
			break
		}
		list = append(list, stack.Route{
			Prefix: r.Prefix, Via: r.Via, Metric: r.Metric, Kind: routeKinds[r.Kind],
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

func (l *reloading) linkSteps() (list []step) {
	for k := range l.now.Interfaces {
		name := l.now.Interfaces[k].Name
		i := slices.Index(l.names, name)
		var was [2]*netem.Config
		if i < len(l.before.Links) {
			was = l.before.Links[i].Impair
		}
		now := l.network.Links[i].Impair
		if impairmentsText(now) == impairmentsText(was) {
			continue
		}
		list = append(list, step{
			text: "link " + name + ": " + impairmentsText(now),
			do: func(*stack.Stack, clock.Time) error {
				out, in := cmp.Or(now[0], &netem.Config{}), cmp.Or(now[1], &netem.Config{})
				return cmp.Or(l.node.Devices.Impair(i, control.WayOut, out),
					l.node.Devices.Impair(i, control.WayIn, in))
			},
		})
	}
	return list
}

// impairmentsText returns the text that describes the impairments of a link in both directions.
func impairmentsText(both [2]*netem.Config) string {
	text := func(c *netem.Config) string {
		c = cmp.Or(c, &netem.Config{})
		if c.Seed != 0 {
			return fmt.Sprintf("%v seed %d", c.String(), c.Seed)
		}
		return c.String()
	}
	return text(both[1]) + " in, " + text(both[0]) + " out"
}

func (l *reloading) forwardingStep() []step {
	was, now := l.was.Forwarding, l.now.Forwarding
	if was == now {
		return nil
	}
	return []step{{
		text: map[bool]string{true: "forwarding", false: "removed: forwarding"}[now],
		do: func(s *stack.Stack, _ clock.Time) error {
			s.Routing().SetForwarding(now)
			return nil
		},
		undo: func(s *stack.Stack, _ clock.Time) { s.Routing().SetForwarding(was) },
	}}
}

// addrs6 returns the IPv6 addresses of each interface. RIPng announces their networks.
func addrs6(list []stack.Interface) (addrs [][]netip.Prefix) {
	for i := range list {
		addrs = append(addrs, list[i].IPv6)
	}
	return addrs
}

func (l *reloading) ripSteps() []step {
	a, b := &l.before.Stack, l.network.Stack
	if b.RIP == nil && b.RIPng == nil || reflect.DeepEqual(a.RIP, b.RIP) &&
		reflect.DeepEqual(a.RIPng, b.RIPng) &&
		reflect.DeepEqual(addrs6(a.Interfaces), addrs6(b.Interfaces)) &&
		reflect.DeepEqual(a.Originate, b.Originate) &&
		reflect.DeepEqual(a.Redistribute, b.Redistribute) {
		return nil
	}
	return []step{{text: "rip", do: func(_ *stack.Stack, now clock.Time) error {
		return l.node.RestartRIP(now)
	}}}
}
