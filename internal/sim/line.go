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

// LinkConfig describes a link: the impairments of each direction, and the MTU.
type LinkConfig struct {
	AB, BA netem.Config
	MTU    int // MTU of the link; 0: stack.DefaultMTU
}

// LineConfig describes two hosts with routers between them, in a line.
type LineConfig struct {
	// Left and Right are the TCP configurations of the two hosts.
	Left, Right tcp.Config
	// Routers is the number of routers between the hosts; 0: the hosts share a link.
	Routers int
	// Links are the links from left to right. If there are too few, the last one is repeated.
	// Without Links, links are ideal.
	Links []LinkConfig
	// RIP makes the routers exchange routes by RIP; nil: static routes. NewLine sets the neighbors,
	// and for IPv6 it sets the dialect to RIPng.
	RIP *rip.Config
	// IPv6 gives the nodes IPv6 addresses instead of IPv4 addresses.
	IPv6 bool
}

// Line is a world with two hosts and routers between them. The i-th link is the network 10.0.i.0/24
// or 2001:db8:0:i::/64, with .1 or ::1 at its left end and .2 or ::2 at its right end.
type Line struct {
	*World
	Left, Right *Host
	Routers     []*Host
	address     netip.Addr // address of the host Right
}

// maxRouters keeps the number of networks within the address range.
const maxRouters = 250

// NewLine builds a line.
func NewLine(seed uint64, cfg LineConfig) (*Line, error) {
	if cfg.Routers < 0 || cfg.Routers > maxRouters {
		return nil, fmt.Errorf("sim: %d routers: must be 0 to %d", cfg.Routers, maxRouters)
	}
	if len(cfg.Links) == 0 {
		cfg.Links = []LinkConfig{{}}
	}
	last := cfg.Routers
	l := &Line{World: New(seed), address: cfg.end(last, 2).Addr()}
	var err error
	left := hostConfig(cfg.face(0, 1), cfg.end(0, 2).Addr(), cfg.Left)
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
		if err := l.join(at, End{r, 0}, cfg.link(i-1)); err != nil {
			return nil, err
		}
		at = End{r, 1}
	}
	right := hostConfig(cfg.face(last, 2), cfg.end(last, 1).Addr(), cfg.Right)
	if l.Right, err = l.AddHost("right", right); err != nil {
		return nil, err
	}
	return l, l.join(at, End{l.Right, 0}, cfg.link(last))
}

func (l *Line) join(a, b End, w LinkConfig) error { return l.Connect(a, b, w.AB, w.BA) }

func (c *LineConfig) link(i int) LinkConfig { return c.Links[min(i, len(c.Links)-1)] }

// end returns the address of an end of the i-th link (1: left, 2: right), and its prefix length.
func (c *LineConfig) end(i, end int) netip.Prefix {
	if c.IPv6 {
		a := [16]byte{0x20, 1, 0xd, 0xb8, 7: byte(i), 15: byte(end)}
		return netip.PrefixFrom(netip.AddrFrom16(a), 64)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), byte(end)}), 24)
}

func (c *LineConfig) face(i, end int) stack.Interface {
	f := stack.Interface{Name: fmt.Sprintf("if%d", i), MTU: c.link(i).MTU}
	if f.Addr = c.end(i, end); c.IPv6 {
		f.Addr, f.IPv6 = netip.Prefix{}, []netip.Prefix{f.Addr}
	}
	return f
}

func hostConfig(face stack.Interface, via netip.Addr, t tcp.Config) stack.Config {
	return stack.Config{
		Interfaces: []stack.Interface{face}, TCP: t,
		Routes: []stack.Route{{Prefix: netip.PrefixFrom(via, 0).Masked(), Via: via}},
	}
}

// router describes the i-th router, counted from 1. It is between links i-1 and i.
func (c *LineConfig) router(i int) stack.Config {
	cfg := stack.Config{
		Interfaces: []stack.Interface{c.face(i-1, 2), c.face(i, 1)}, Forwarding: true,
	}
	if c.RIP != nil {
		speaks := *c.RIP
		speaks.Neighbors = nil
		if c.IPv6 { // RIPng discovers its neighbors itself
			speaks.Dialect, cfg.RIPng = rip.RIPng, &speaks
			return cfg
		}
		for iface, r := range [...]int{i - 1, i + 1} { // r is the router at the link's other end
			if r > 0 && r <= c.Routers {
				n := rip.Neighbor{Addr: c.end(min(r, i), 1+iface).Addr(), Iface: iface}
				speaks.Neighbors = append(speaks.Neighbors, n)
			}
		}
		cfg.RIP = &speaks
		return cfg
	}
	for j := range c.Routers + 1 {
		if to := (stack.Route{Prefix: c.end(j, 0), Via: c.end(i-1, 1).Addr()}); j < i-1 {
			cfg.Routes = append(cfg.Routes, to)
		} else if to.Via = c.end(i, 2).Addr(); j > i {
			cfg.Routes = append(cfg.Routes, to)
		}
	}
	return cfg
}

// Address returns the address of the host Right, with a port.
func (l *Line) Address(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(l.address, port)
}

// Bulk connects two applications, one on each host. It runs the world until both connections have
// ended, for at most d, and reports whether both have ended.
func (l *Line) Bulk(left, right *Bulk, port uint16, d time.Duration) (bool, error) {
	if _, err := l.Right.Listen(port, 1, func(*Conn) App { return right }); err != nil {
		return false, err
	}
	if _, err := l.Left.Dial(l.Address(port), left); err != nil {
		return false, err
	}
	return l.RunUntil(d, func() bool { return left.Over && right.Over }), nil
}
