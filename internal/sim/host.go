package sim

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Host is a host or a router in a world, with its stack.
type Host struct {
	actor
	world    *World
	name     string
	faces    []capture.Interface // interfaces as the log and captures name them
	stack    *stack.Stack
	links    []*direction // links by interface; nil: not connected
	limited  []*direction // links with a limit
	room     []int        // number of packets that each interface takes now
	accept   map[*tcp.Listener]func(*Conn) App
	waiting  []*Socket // sockets that wait for room in the stack, each once
	settling bool
	taps     []stack.Tap
}

// room is the number of packets that a link without an End.SetRoom limit takes from a host at once.
// The link's queue is then the only limit: it drops packets beyond its length, as on a real path.
const room = 1 << 16

// AddHost adds a host or router with a unique name. The world provides TCP's secret and the stack's
// random source if cfg has none.
func (w *World) AddHost(name string, cfg stack.Config) (*Host, error) {
	if w.names[name] {
		return nil, fmt.Errorf("sim: duplicate host %s", name)
	}
	if cfg.Rand == nil {
		cfg.Rand = w.Rand("forward " + name)
	}
	if cfg.TCP.Secret == ([16]byte{}) {
		secret := w.Rand("secret " + name)
		for i := range cfg.TCP.Secret {
			cfg.TCP.Secret[i] = byte(secret.Uint32())
		}
	}
	s, err := stack.New(w.now, cfg)
	if err != nil {
		return nil, fmt.Errorf("sim: host %s: %w", name, err)
	}
	h := &Host{
		world: w, name: name, stack: s, links: make([]*direction, len(cfg.Interfaces)),
		room: make([]int, len(cfg.Interfaces)), accept: map[*tcp.Listener]func(*Conn) App{},
	}
	h.acts = h
	for i := range h.room {
		h.room[i] = room
	}
	for i := range cfg.Interfaces {
		face := capture.Interface{
			Name: faceName(cfg.Interfaces, i), Addr: cfg.Interfaces[i].Addr.String(),
		}
		if list := cfg.Interfaces[i].IPv6; !cfg.Interfaces[i].Addr.IsValid() && len(list) > 0 {
			face.Addr = list[0].String()
		}
		h.faces = append(h.faces, face)
	}
	w.names[name] = true
	w.hosts = append(w.hosts, h)
	w.eventQueue.set(&h.actor, w.now) // makes the world call Output for the first time
	return h, nil
}

// faceName returns the i-th interface's name, or its number if it has no unique name.
func faceName(all []stack.Interface, i int) string {
	name := all[i].Name
	for j := range all {
		if name == "" || j != i && all[j].Name == name {
			return strconv.Itoa(i)
		}
	}
	return name
}

// Name returns the host's name.
func (h *Host) Name() string { return h.name }

// World returns the world that the host is in.
func (h *Host) World() *World { return h.world }

// Stack returns the host's stack. After a call that may have changed its state, call Settle.
func (h *Host) Stack() *stack.Stack { return h.stack }

// Settle sends the packets that calls of the stack have queued, and notifies applications.
func (h *Host) Settle() { h.settle(h.world.now) }

func (h *Host) act(now clock.Time) {
	h.stack.Advance(now)
	h.settle(now)
}

// settle sends the stack's packets and notifies applications until there are neither packets nor
// events. It also handles the results of the calls that applications make in the meantime.
func (h *Host) settle(now clock.Time) {
	if h.settling {
		return
	}
	h.settling = true
	for {
		h.drain(now)
		if !h.notify(now) {
			break
		}
	}
	h.settling = false
	due := h.stack.Deadline()
	for _, v := range h.limited {
		due = clock.Earliest(due, v.roomAt())
	}
	h.world.eventQueue.set(&h.actor, due)
}

// drain sends the host's packets to the links that have room.
func (h *Host) drain(now clock.Time) {
	if len(h.limited) > 0 || h.stack.Pending() {
		h.send(now)
	}
}

// send puts the stack's packets on the links. It visits only links that have a limit or packets to
// send, because a router may have thousands of links.
func (h *Host) send(now clock.Time) {
	batch := h.world.batch
	for more := true; more; {
		for _, v := range h.limited {
			h.room[v.from] = v.room(now)
		}
		more = h.stack.Output(now, h.room, batch)
		trains := batch.Trains()
		for i := range trains {
			t := &trains[i]
			h.room[t.Iface] = room
			if v := h.links[t.Iface]; v != nil {
				v.send(now, t)
			}
		}
		batch.Reset()
	}
}

// notify passes events of TCP and UDP to applications, and reports whether there were any.
func (h *Host) notify(now clock.Time) bool {
	notified := false
	for {
		tc, l, e, ok := h.stack.TCP().NextEvent()
		if !ok {
			return h.notifySockets(now) || notified
		}
		notified = true
		if l != nil {
			h.acceptAll(now, l)
		} else if c, ok := tc.Owner.(*Conn); ok {
			c.app.Turn(now, c, e)
		}
	}
}

func (h *Host) acceptAll(now clock.Time, l *tcp.Listener) {
	for tc, ok := l.Accept(); ok; tc, ok = l.Accept() {
		c := h.newConn(tc)
		c.app = h.accept[l](c)
		c.app.Turn(now, c, 0)
	}
}

// Listen accepts connections on a port. It calls accept for the application of each new connection.
func (h *Host) Listen(port uint16, backlog int, accept func(*Conn) App) (*tcp.Listener, error) {
	l, err := h.stack.TCP().Listen(netip.AddrPortFrom(netip.IPv6Unspecified(), port), backlog)
	if err != nil {
		return nil, fmt.Errorf("sim: host %s: %w", h.name, err)
	}
	h.accept[l] = accept
	return l, nil
}

// Dial opens a connection for app. app's Turn runs at once, and again on each event.
func (h *Host) Dial(to netip.AddrPort, app App) (*Conn, error) {
	tc, err := h.stack.TCP().Connect(h.world.now, to, 0)
	if err != nil {
		return nil, fmt.Errorf("sim: host %s: %w", h.name, err)
	}
	c := h.newConn(tc)
	c.app = app
	app.Turn(h.world.now, c, 0)
	h.settle(h.world.now)
	return c, nil
}
