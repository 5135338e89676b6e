package tidepool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/services"
)

// Node is a running host or router, with its own addresses, routes, TCP, UDP and ICMP. Open makes
// one from a Config, OpenFile from an .lnx file, and OpenPair two hosts with a link between them.
// Close stops it.
//
// Listen, ListenPacket, Dial and DialContext are like those of package net, and return
// net.Listeners, net.PacketConns and net.Conns. A Dialer also chooses the local address. ListenTCP,
// DialTCP, ListenUDP and DialUDP return the types of this package, which have TCP_INFO, probes and
// packet information. Forward and ForwardUDP accept connections and datagrams for any address.
// Publish and Expose forward ports between the machine and the node.
//
// AddRoute, SetUp, Impair and SetLoss change the network while it runs. Interfaces have the names
// of Config.Interfaces; those without a name are if0, if1 and so on, by their index.
//
// All methods may be called by several goroutines at once. Methods of a closed Node, and of the
// zero Node, return errors; those about sockets wrap net.ErrClosed.
type Node struct {
	node   *operator.Node
	addrs  []netip.Addr
	hosts  map[string]netip.Addr
	names  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	router bool
}

// Open starts the node that cfg describes.
func Open(cfg Config) (*Node, error) {
	inner, err := cfg.internal()
	if err != nil {
		inner.Node.CloseDevices()
		return nil, err
	}
	n, err := open(inner, cfg.Hosts)
	if errors.Is(err, node.ErrConfig) {
		err = fmt.Errorf("%w: %w", errConfig, err)
	}
	if err != nil {
		return nil, err
	}
	n.names = cfg.Lookup
	return n, nil
}

// OpenPair starts two hosts, 10.0.0.1 with 2001:db8::1 and 10.0.0.2 with 2001:db8::2, joined by a
// link in memory with impairments i in each direction: with a Delay of 20 ms the round-trip time is
// 40 ms. Use it to test programs that use a network:
//
//	client, server, err := tidepool.OpenPair(tidepool.Impairments{
//		Delay: 20 * time.Millisecond, Loss: 0.01, Seed: 1,
//	})
func OpenPair(i Impairments) (a, b *Node, err error) {
	x, y := Pipe(0)
	six := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
	a, err = Open(Config{Name: "a", Interfaces: []Interface{{
		Addr: netip.MustParsePrefix("10.0.0.1/24"), IPv6: six("2001:db8::1/64"), Link: x, Impair: i,
	}}})
	if err != nil {
		_ = y.Close() // report the first error
		return nil, nil, err
	}
	b, err = Open(Config{Name: "b", Interfaces: []Interface{
		{Addr: netip.MustParsePrefix("10.0.0.2/24"), IPv6: six("2001:db8::2/64"), Link: y},
	}})
	if err != nil {
		_ = a.Close() // report the first error
		return nil, nil, err
	}
	return a, b, nil
}

// OpenFile starts the node that an .lnx file describes. TCP's timeouts come from the file. Their
// defaults are short, for networks within one machine.
func OpenFile(path string) (*Node, error) { return (&File{Path: path}).Open() }

// File starts nodes from an .lnx file, and can replace its links and settings.
type File struct {
	Path string // the name of the file, which errors contain
	// Text is the file's text. Nil: Open reads the file.
	Text []byte
	// Links replace the UDP sockets and TUN devices of the interfaces with these names, as the
	// field Link of Interface. The node closes them, even if Open fails.
	Links map[string]io.ReadWriteCloser
	// Lookup is used like Config.Lookup.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// TCP replaces the file's settings: by its NoOptions and NoResets, and by its other fields that
	// are not zero. Nil: it replaces none.
	TCP *TCP
	// Clock, Capture and Seed are used like those of Config.
	Clock   *Clock
	Capture string
	Seed    uint64
	// Sent is called with each packet that the node sends, in pieces that are valid during the
	// call. It must neither block nor use the node. Nil: it is not called.
	Sent func(iface string, pieces [][]byte)
}

// Open starts a node. An error about the file has its line and column.
func (f *File) Open() (*Node, error) {
	cfg, err := f.internal()
	if err != nil {
		cfg.Node.CloseDevices()
		return nil, err
	}
	n, err := open(cfg, nil)
	if err != nil {
		return nil, err
	}
	n.names = f.Lookup
	return n, nil
}

func (f *File) internal() (cfg operator.Config, err error) {
	cfg.Pcap = f.Capture
	cfg.Node = node.Config{Seed: f.Seed, Devices: map[string]link.Device{}}
	for name, l := range f.Links {
		cfg.Node.Devices[name] = device(l)
	}
	if f.Clock != nil {
		cfg.Node.Clock = &f.Clock.clock
	}
	if f.TCP != nil {
		if err := f.TCP.check(); err != nil {
			return cfg, err
		}
		cfg.Node.Tune = f.TCP.apply
	}
	text := f.Text
	if text == nil {
		if text, err = files.Text(f.Path, files.MaxText); err != nil {
			return cfg, err
		}
	}
	if cfg.LNX, err = lnx.Parse(f.Path, text); err != nil {
		return cfg, err
	}
	if f.Sent != nil {
		faces := cfg.LNX.Interfaces
		cfg.Node.Tap = node.Sent(func(i int, pieces [][]byte) { f.Sent(faces[i].Name, pieces) })
	}
	for name := range f.Links {
		face, ok := cfg.LNX.Interface(name)
		if !ok {
			return cfg, fmt.Errorf("%w: Links: %s has no interface %s", errConfig,
				f.Path, name)
		}
		face.UDP, face.Tun = lnx.HostPort{}, nil
		for i := range cfg.LNX.Neighbors {
			if nb := &cfg.LNX.Neighbors[i]; nb.Iface == name {
				nb.UDP = lnx.HostPort{}
			}
		}
	}
	return cfg, nil
}

func open(cfg operator.Config, hosts map[string]netip.Addr) (*Node, error) {
	inner, err := operator.Open(cfg)
	if err != nil {
		return nil, err
	}
	n := &Node{node: inner, hosts: hosts, router: cfg.LNX.Forwarding}
	for i := range cfg.LNX.Interfaces {
		for _, p := range cfg.LNX.Interfaces[i].Addrs() {
			n.addrs = append(n.addrs, p.Addr())
		}
	}
	return n, nil
}

// Close ends the node. Data that was written to connections that are already closed is still
// delivered, for up to two seconds, or, on a Clock, as far as possible without advancing it. Other
// connections are reset, and blocked calls return net.ErrClosed.
func (n *Node) Close() error {
	if n.node == nil {
		return syscall.EINVAL
	}
	return n.node.Close()
}

// Crash ends the node as a power failure does: it sends nothing more, and its peers and neighbors
// notice only by their timeouts. Blocked calls return net.ErrClosed.
func (n *Node) Crash() error {
	if n.node == nil {
		return syscall.EINVAL
	}
	return n.node.Crash()
}

// Addrs returns the node's addresses, in the order of its interfaces, IPv4 first: the configured
// ones, and then those that interfaces with Auto got from routers.
func (n *Node) Addrs() []netip.Addr {
	list := append([]netip.Addr(nil), n.addrs...)
	answer, err := control.Ask(context.Background(), n.inner(), control.Interfaces{})
	if err != nil {
		return list // the node is closed
	}
	for _, f := range answer {
		for _, a := range f.Addresses {
			p := a.Prefix.Addr()
			if a.State != "tentative" && !p.IsLinkLocalUnicast() && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// SetLoss makes a router drop a share, from 0 to 1, of the packets that it forwards, in both
// directions. It replaces the previous share; 0 ends the loss. The packets are chosen at random,
// and are the same in every run if Config.Seed is set. SetLoss does not affect packets from or to
// the node itself: for losses on a link, use Impair or the field Impair of an Interface. If the
// node is not a router, the error wraps errors.ErrUnsupported.
func (n *Node) SetLoss(share float64) error {
	if !n.router {
		return fmt.Errorf("tidepool: SetLoss: the node is not a router: %w", errors.ErrUnsupported)
	}
	_, err := n.inner().Do(context.Background(), control.SetLoss{Percent: share * 100})
	return err
}

// SetUp enables or disables the interface of that name.
func (n *Node) SetUp(name string, up bool) error {
	if n.node == nil {
		return syscall.EINVAL
	}
	_, err := n.node.Do(context.Background(), control.SetLink{Iface: name, Up: up})
	return err
}

// Listen accepts connections to an address such as "10.0.0.1:80" or "[fe80::1%if0]:80", or ":80"
// for all addresses of the node. Port 0 means a free port. The network is "tcp", "tcp4" for IPv4
// only, "tcp6" for IPv6 only, or "rcp".
//
// At most 1,024 established connections wait for Accept. If there is no room for another, the
// listener drops the ACK that would complete it, and retransmits its SYN-ACK until there is.
func (n *Node) Listen(network, address string) (net.Listener, error) {
	if network == "rcp" {
		l, err := n.listenRCP(address)
		if err != nil {
			return nil, err // a nil *RCPListener would be a non-nil net.Listener
		}
		return l, nil
	}
	on, err := n.local(network, "tcp", address)
	if err != nil {
		return nil, err
	}
	l, err := n.inner().Node.TCP.ListenWith(on, node.ListenOptions{OnlyIPv6: network == "tcp6"})
	if err != nil {
		return nil, err
	}
	return &Listener{l}, nil
}

// ListenTCP is Listen with a netip.AddrPort. The zero netip.Addr means all addresses of the node,
// and so does :: if it has IPv6; 0.0.0.0 means all of IPv4.
func (n *Node) ListenTCP(on netip.AddrPort) (*Listener, error) {
	if !on.Addr().IsValid() {
		on = n.inner().Node.AllAddrs(on.Port())
	}
	l, err := n.inner().Node.TCP.Listen(on, 0)
	if err != nil {
		return nil, err
	}
	return &Listener{l}, nil
}

// The zero values of what Open, Dial, Listen and Pipe return behave as if they had been closed.

func (n *Node) inner() *operator.Node     { return orClosed(n.node, operator.Closed) }
func (c *Conn) inner() *node.Conn         { return orClosed(c.conn, node.ClosedConn) }
func (l *Listener) inner() *node.Listener { return orClosed(l.listener, node.ClosedListener) }
func (c *RCPConn) inner() *node.RCPConn   { return orClosed(c.conn, node.ClosedRCPConn) }
func (l *RCPListener) inner() *node.RCPListener {
	return orClosed(l.listener, node.ClosedRCPListener)
}

func (s *RDTServer) inner() *services.RDTServer {
	return orClosed(s.server, services.ClosedRDTServer)
}
func (c *PacketConn) inner() *node.PacketConn { return orClosed(c.conn, node.ClosedPacketConn) }
func (r *Request) inner() *node.Caught        { return orClosed(r.caught, node.Decided) }
func (r *UDPRequest) inner() *node.CaughtUDP  { return orClosed(r.caught, node.DecidedUDP) }
func (e *PipeEnd) inner() *link.End           { return orClosed(e.end, link.ClosedEnd) }
func (c *IPConn) inner() *node.RawConn        { return orClosed(c.conn, node.ClosedRawConn) }

func orClosed[T any](v *T, closed func() *T) *T {
	if v == nil {
		return closed()
	}
	return v
}

// Clock is a time that moves only when a program advances it. The zero Clock is ready for use and
// starts with the year 2000, UTC.
//
// Nodes that share a Clock need no goroutine. When a call such as Write or Dial returns, everything
// that it causes at the present time, on all of the nodes, has happened. Later events happen in
// Advance, in order of time; events at the same time happen in the order in which the nodes were
// opened. The same calls in the same order therefore have the same effect. Goroutines that wait in
// Read or Accept continue as soon as there is something for them, and Advance does not wait for
// them. Where that matters, step from event to event with Next.
type Clock struct{ clock node.Clock }

// Now returns the current time of the clock.
func (c *Clock) Now() time.Time { return c.clock.Now() }

// Advance moves the clock forward by d and runs all events that are due until then. A negative d
// counts as 0. The clock ends after 146 years.
func (c *Clock) Advance(d time.Duration) { c.clock.Advance(d) }

// Next returns the time until the next event, and false if there is none.
func (c *Clock) Next() (time.Duration, bool) { return c.clock.Next() }

// Follow makes the clock advance itself with the time of package time until stop is called. Call it
// before nodes use the clock, and do not call Advance. In a testing/synctest bubble, the clock
// follows the bubble's time. The same calls at the same times then have the same effects. Programs
// see packets up to 1 µs after their arrival, after a delay that the seed chooses. So they seldom
// wake up at the same instant as a timer.
func (c *Clock) Follow(seed uint64) (stop func()) { return c.clock.Follow(seed) }

// Pause stops or resumes a node of the clock, as if its machine was suspended. A paused node
// neither receives nor sends, and its timers do not expire. Calls on the node wait until it
// resumes. Its timers then see the time that has passed.
func (c *Clock) Pause(n *Node, paused bool) { c.clock.Pause(n.inner().Node, paused) }

// Vir returns the node's socket calls by descriptor number. Every call returns the same table.
func (n *Node) Vir() *Vir { return &Vir{n.inner().Node.Vir()} }

// AddRoute adds a static route. It returns syscall.EINVAL if the prefix has host bits, ENETUNREACH
// if no interface is attached to the next hop's network, and EEXIST if there is already a route to
// that prefix by that next hop.
func (n *Node) AddRoute(r Route) error {
	_, err := n.inner().Do(context.Background(), control.AddRoute{
		Prefix: r.Prefix, Via: r.Via, Metric: r.Metric, Kind: control.RouteKind(r.Kind),
	})
	return err
}

// DelRoute removes the static route to a prefix by a next hop, or all static routes to the prefix
// if via is the zero Addr. It returns syscall.ESRCH if there is no such route.
func (n *Node) DelRoute(p netip.Prefix, via netip.Addr) error {
	_, err := n.inner().Do(context.Background(), control.DelRoute{Prefix: p, Via: via})
	return err
}

// Routes returns the routes in use, sorted by prefix. The metric of a RIP route is its hop count.
func (n *Node) Routes() ([]RouteInfo, error) {
	if n.node == nil {
		return nil, syscall.EINVAL
	}
	answer, err := control.Ask(context.Background(), n.node, control.Routes{})
	if err != nil {
		return nil, err
	}
	list := make([]RouteInfo, len(answer))
	for i, r := range answer {
		list[i] = RouteInfo{
			Route: Route{
				Prefix: r.Prefix, Via: r.NextHop, Metric: r.Cost, Kind: string(r.Kind),
			},
			Interface: r.Iface, Origin: "rip",
		}
		switch r.Origin {
		case control.OriginLocal:
			list[i].Origin = "local"
		case control.OriginStatic:
			list[i].Origin = "static"
		case control.OriginRIP:
		}
	}
	return list, nil
}
