package sim

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Wire describes a wire: what each direction does, and the largest packet.
type Wire struct {
	AB, BA netem.Config
	MTU    int // 0: stack.DefaultMTU
}

// LineConfig describes two hosts with routers between them, in a line.
type LineConfig struct {
	// Left and Right are the two hosts' TCP.
	Left, Right tcp.Config
	// Routers is how many routers are between them; 0: they share a wire.
	Routers int
	// Wires are the wires from the left to the right; the last is meant as often as
	// it is needed. None: wires that do nothing.
	Wires []Wire
	// RIP has the routers find their routes by RIP; nil: static routes. Its
	// neighbours are filled in.
	RIP *rip.Config
}

// Line is a world with two hosts and routers between them. The i-th wire is the
// network 10.0.i.0/24, whose ends are .1 on the left and .2 on the right.
type Line struct {
	*World
	Left, Right *Host
	Routers     []*Host
}

// maxRouters keeps a line within the addresses of its networks.
const maxRouters = 250

// NewLine builds a line.
func NewLine(seed uint64, cfg LineConfig) (*Line, error) {
	if cfg.Routers < 0 || cfg.Routers > maxRouters {
		return nil, fmt.Errorf("sim: %d routers: want 0 to %d", cfg.Routers, maxRouters)
	}
	if len(cfg.Wires) == 0 {
		cfg.Wires = []Wire{{}}
	}
	l := &Line{World: New(seed)}
	last := cfg.Routers
	var err error
	left := hostConfig(cfg.face(0, 1), addrOf(0, 2), cfg.Left)
	if l.Left, err = l.AddHost("left", left); err != nil {
		return nil, err
	}
	at := End{l.Left, 0}
	for i := 1; i <= cfg.Routers; i++ {
		r, err := l.AddHost(fmt.Sprintf("router%d", i), cfg.router(i))
		if err != nil {
			return nil, err
		}
		l.Routers = append(l.Routers, r)
		if err := l.join(at, End{r, 0}, cfg.wire(i-1)); err != nil {
			return nil, err
		}
		at = End{r, 1}
	}
	right := hostConfig(cfg.face(last, 2), addrOf(last, 1), cfg.Right)
	if l.Right, err = l.AddHost("right", right); err != nil {
		return nil, err
	}
	return l, l.join(at, End{l.Right, 0}, cfg.wire(last))
}

func (l *Line) join(a, b End, w Wire) error { return l.Connect(a, b, w.AB, w.BA) }

func (c *LineConfig) wire(i int) Wire { return c.Wires[min(i, len(c.Wires)-1)] }

// addrOf is the address of an end of the i-th wire: 1 the left, 2 the right one.
func addrOf(i, end int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i), byte(end)}) }

func (c *LineConfig) face(i, end int) stack.Interface {
	return stack.Interface{
		Name: fmt.Sprintf("if%d", i), MTU: c.wire(i).MTU,
		Addr: netip.PrefixFrom(addrOf(i, end), 24),
	}
}

func hostConfig(face stack.Interface, via netip.Addr, t tcp.Config) stack.Config {
	return stack.Config{
		Interfaces: []stack.Interface{face}, TCP: t,
		Routes: []stack.Route{{Prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Via: via}},
	}
}

// router describes the i-th router, counted from 1: between wires i-1 and i.
func (c *LineConfig) router(i int) stack.Config {
	cfg := stack.Config{
		Interfaces: []stack.Interface{c.face(i-1, 2), c.face(i, 1)}, Forwarding: true,
	}
	if c.RIP != nil {
		speaks := *c.RIP
		speaks.Neighbors = nil
		hear := func(addr netip.Addr, iface int) {
			speaks.Neighbors = append(speaks.Neighbors, rip.Neighbor{Addr: addr, Iface: iface})
		}
		if i > 1 {
			hear(addrOf(i-1, 1), 0)
		}
		if i < c.Routers {
			hear(addrOf(i, 2), 1)
		}
		cfg.RIP = &speaks
		return cfg
	}
	for j := range c.Routers + 1 {
		route := stack.Route{Prefix: netip.PrefixFrom(addrOf(j, 0), 24)}
		switch {
		case j < i-1:
			route.Via = addrOf(i-1, 1)
		case j > i:
			route.Via = addrOf(i, 2)
		default:
			continue
		}
		cfg.Routes = append(cfg.Routes, route)
	}
	return cfg
}

// Address returns where the right host is reached from the left one.
func (l *Line) Address(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(addrOf(len(l.Routers), 2), port)
}

// Bulk connects the two hosts by an application each, on a port, and runs until
// both connections are over, for at most d. It reports whether they are.
func (l *Line) Bulk(left, right *Bulk, port uint16, d time.Duration) (bool, error) {
	if _, err := l.Right.Listen(port, 1, func(*Conn) App { return right }); err != nil {
		return false, err
	}
	if _, err := l.Left.Dial(l.Address(port), left); err != nil {
		return false, err
	}
	return l.RunUntil(d, func() bool { return left.Over && right.Over }), nil
}
