package tidepool

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

// Dialer connects with the options of its fields. Node's own Dial methods use a Dialer that has
// only a Node.
type Dialer struct {
	// Node is the node that connects. Required.
	Node *Node
	// LocalAddr is the local address and port. The zero netip.Addr, 0.0.0.0 or :: means an address
	// of the interface that the route to the peer uses (RFC 6724 §5); port 0 means a free port (RFC
	// 6056).
	//
	// A dial fails with syscall.EADDRNOTAVAIL if the node does not have the address. It fails with
	// EADDRINUSE if a listener or socket uses the port, or if the same connection exists or is in
	// TIME-WAIT.
	LocalAddr netip.AddrPort
	// Timeout limits a dial, in the time of the node's Clock if it has one. After it, the dial
	// fails with os.ErrDeadlineExceeded. 0: the limit is the number of SYN retransmissions.
	Timeout time.Duration
	// RCP configures connections of the network "rcp".
	RCP RCP
}

// Dial connects to an address such as "10.0.0.1:80" or "[fe80::1%if0]:80". The network is "tcp",
// "udp" or "rcp"; "tcp4", "tcp6", "udp4" and "udp6" use one version of IP. Connections of "rcp" are
// RCPConns. If a name has several addresses, Dial tries another one every 250 ms, and returns the
// first connection (RFC 8305).
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext is like Dial, but fails with the cause of ctx when ctx ends. It can be the
// DialContext of an http.Transport.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	transport := transportOf(network)
	if transport != "udp" && network != "rcp" {
		transport = "tcp"
	}
	n := d.node()
	list, err := n.resolve(ctx, "dial", network, transport, address)
	if err != nil {
		return nil, err
	}
	for _, a := range n.addrs {
		// No host means the local system, as in net.Dial.
		if !list[0].Addr().IsValid() && fits(network, a) {
			list[0] = netip.AddrPortFrom(a, list[0].Port())
		}
	}
	from := d.LocalAddr.Addr().Unmap()
	list = slices.DeleteFunc(list, func(to netip.AddrPort) bool {
		return from.IsValid() && !from.IsUnspecified() && to.Addr().Is4() != from.Is4()
	})
	if len(list) == 0 {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.AddrError{
			Err: "no suitable address found", Addr: d.LocalAddr.String(),
		}}
	}
	dial := connector(d.DialTCP)
	switch transport {
	case "udp":
		dial = connector(func(_ context.Context, to netip.AddrPort) (*PacketConn, error) {
			return d.DialUDP(to)
		})
	case "rcp":
		dial = connector(d.DialRCP)
	}
	ctx, cancel := n.inner().Node.Time.Within(ctx, d.Timeout)
	defer cancel()
	return race(ctx, &n.inner().Node.Time, list, dial)
}

// fits reports whether a network such as "tcp6" has addresses of the family of a.
func fits(network string, a netip.Addr) bool {
	if a.Is4() {
		return !strings.HasSuffix(network, "6")
	}
	return !strings.HasSuffix(network, "4")
}

// connect connects to an address.
type connect func(ctx context.Context, to netip.AddrPort) (net.Conn, error)

// connector converts dial to a connect, which returns a nil net.Conn if dial fails.
func connector[C net.Conn](dial func(context.Context, netip.AddrPort) (C, error)) connect {
	return func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		c, err := dial(ctx, to)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

// attemptDelay is the Connection Attempt Delay (RFC 8305 §8).
const attemptDelay = 250 * time.Millisecond

// race connects to the addresses of one host in their order. The next attempt begins attemptDelay
// after the last one, or when one has failed (RFC 8305 §5). The first connection ends the other
// attempts. If all fail, the error is the first address's, as in package net.
func race(
	ctx context.Context, clock *node.Time, list []netip.AddrPort, dial connect,
) (won net.Conn, err error) {
	if len(list) == 1 {
		return dial(ctx, list[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		to   netip.AddrPort
		conn net.Conn
		err  error
	}
	results := make(chan result)
	preferred, running := list[0], 0
	for len(list) > 0 || running > 0 {
		wait, stop := context.Background(), context.CancelFunc(func() {})
		if len(list) > 0 {
			to := list[0]
			go func() {
				c, err := dial(ctx, to)
				results <- result{to, c, err}
			}()
			list, running = list[1:], running+1
		}
		if len(list) > 0 {
			wait, stop = clock.Within(ctx, attemptDelay)
		}
		select {
		case <-wait.Done():
		case r := <-results:
			running--
			switch {
			case r.err != nil && r.to == preferred:
				err = r.err
			case r.err == nil && won == nil:
				won, list = r.conn, nil
				cancel()
			case r.err == nil:
				_ = r.conn.Close() // another address has already connected
			}
		}
		stop()
	}
	if won != nil {
		return won, nil
	}
	return nil, err
}

// DialTCP is DialContext for TCP with a netip.AddrPort.
func (d *Dialer) DialTCP(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	n := d.node().inner().Node
	ctx, cancel := n.Time.Within(ctx, d.Timeout)
	defer cancel()
	return connOf(n.TCP.DialFrom(ctx, d.LocalAddr, to))
}

// DialUDP opens a UDP socket that sends to one address and receives only from it. After an ICMP
// error that is permanent, such as port unreachable, the next call returns it. Time exceeded is not
// returned, as on Linux.
func (d *Dialer) DialUDP(to netip.AddrPort) (*PacketConn, error) {
	return packetConnOf(d.node().inner().Node.Packets.DialFrom(d.LocalAddr, unmap(to)))
}

// node returns a closed node if the field is nil.
func (d *Dialer) node() *Node {
	if d.Node == nil {
		return &Node{}
	}
	return d.Node
}

// Dial is the Dial of a Dialer that has only a Node.
func (n *Node) Dial(network, address string) (net.Conn, error) {
	return (&Dialer{Node: n}).Dial(network, address)
}

// DialContext is like Dial, but fails with the cause of ctx when ctx ends. It can be the
// DialContext of an http.Transport.
func (n *Node) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&Dialer{Node: n}).DialContext(ctx, network, address)
}

// DialTCP is DialContext for TCP with a netip.AddrPort.
func (n *Node) DialTCP(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	return (&Dialer{Node: n}).DialTCP(ctx, to)
}

// DialUDP opens a UDP socket that sends to one address and receives only from it. See
// Dialer.DialUDP for ICMP errors.
func (n *Node) DialUDP(to netip.AddrPort) (*PacketConn, error) {
	return (&Dialer{Node: n}).DialUDP(to)
}

// resolve parses HOST:PORT, and returns the addresses in the order in which to try them. The host
// is an address, a name, or empty, which stands for the zero netip.Addr.
func (n *Node) resolve(
	ctx context.Context, op, network, transport, address string,
) ([]netip.AddrPort, error) {
	fail := func(err error) ([]netip.AddrPort, error) {
		return nil, &net.OpError{Op: op, Net: network, Err: err}
	}
	version, ok := strings.CutPrefix(network, transport)
	if !ok || version != "" && version != "4" && version != "6" {
		return fail(net.UnknownNetworkError(network))
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return fail(err)
	}
	if transport == "rcp" {
		transport = "udp" // RCP uses UDP ports
	}
	port, err := net.DefaultResolver.LookupPort(ctx, transport, service)
	if err != nil {
		return fail(err)
	}
	addrs := []netip.Addr{{}}
	if host != "" {
		if addrs, err = n.addrsOf(ctx, version, host); err != nil {
			return fail(err)
		}
	}
	list := make([]netip.AddrPort, len(addrs))
	for k, a := range addrs {
		list[k] = netip.AddrPortFrom(a, uint16(port))
	}
	return list, nil
}

// addrsOf returns the addresses of a host, which is an address or a name, in the order of RFC 6724
// §6, the families alternating (RFC 8305 §4). The version of IP is "4", "6" or empty for both.
func (n *Node) addrsOf(ctx context.Context, version, host string) (list []netip.Addr, err error) {
	a, known := n.hosts[host]
	if !known {
		a, err = netip.ParseAddr(host)
	}
	switch {
	case err == nil:
		if a == netip.IPv6Unspecified() && version == "4" {
			a = netip.IPv4Unspecified() // as in package net
		}
		list = []netip.Addr{a}
	default:
		if list, err = n.byName(ctx, "ip"+version, host); err != nil {
			return nil, err
		}
		list = slices.Clone(list)
	}
	for k := range list {
		list[k] = list[k].Unmap()
	}
	list = slices.DeleteFunc(list, func(a netip.Addr) bool {
		return !a.IsValid() || version != "" && a.Is4() != (version == "4")
	})
	if len(list) == 0 {
		return nil, &net.AddrError{Err: "no suitable address found", Addr: host}
	}
	if len(list) == 1 {
		return list, nil
	}
	if err := n.inner().Node.SortAddrs(list); err != nil {
		return nil, err
	}
	return alternate(list), nil
}

// byName looks up a name with Config.Lookup, or else in the DNS.
func (n *Node) byName(ctx context.Context, network, name string) (list []netip.Addr, err error) {
	err = &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	if n.names != nil && name != "" {
		list, err = n.names(ctx, network, name)
	}
	of, ok := errors.AsType[*net.DNSError](err)
	if ok && of.IsNotFound && name != "" && n.inner().Services.DNS.HasServer() {
		return n.inner().Services.DNS.Lookup(ctx, network, name)
	}
	return list, err
}

// known looks up a name in Hosts, or else with Lookup.
func (n *Node) known(ctx context.Context, network, name string) ([]netip.Addr, error) {
	if a, ok := n.hosts[name]; ok {
		return []netip.Addr{a}, nil
	}
	if n.names != nil {
		return n.names(ctx, network, name)
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// Resolver returns a resolver of the node's names: those of Hosts and Lookup, and those that
// Config.DNS or the lines `dns server` of a file find. A query that is lost is retransmitted after
// 1, 2 and 4 seconds.
//
// The resolver is Go's own. It also uses the names in the machine's /etc/hosts, and the search
// domains and timeouts of its /etc/resolv.conf.
func (n *Node) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(
		ctx context.Context, _, _ string,
	) (net.Conn, error) {
		if n.node == nil {
			return nil, net.ErrClosed
		}
		client, stub := net.Pipe()
		go n.node.Services.DNS.ServeStub(ctx, stub, n.known)
		return client, nil
	}}
}

// alternate moves addresses so that the families alternate, and keeps the order of each family.
func alternate(list []netip.Addr) []netip.Addr {
	var own, other []netip.Addr
	for _, a := range list {
		if a.Is4() == list[0].Is4() {
			own = append(own, a)
		} else {
			other = append(other, a)
		}
	}
	list = list[:0]
	for k := range max(len(own), len(other)) {
		list = append(list, own[min(k, len(own)):min(k+1, len(own))]...)
		list = append(list, other[min(k, len(other)):min(k+1, len(other))]...)
	}
	return list
}

// local parses the HOST:PORT of a listener. Without a host, the listener uses all of the node's
// addresses of the network's families. Like package net, local prefers a name's IPv4 address. If
// the network is "tcp" or "udp", it treats 0.0.0.0 like an empty host.
func (n *Node) local(network, transport, address string) (netip.AddrPort, error) {
	list, err := n.resolve(context.Background(), "listen", network, transport, address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	k := slices.IndexFunc(list, func(a netip.AddrPort) bool { return a.Addr().Is4() })
	on := list[max(k, 0)]
	switch {
	case on.Addr().IsValid() && !on.Addr().IsUnspecified():
		return on, nil
	case strings.HasSuffix(network, "4"):
		return netip.AddrPortFrom(netip.IPv4Unspecified(), on.Port()), nil
	case strings.HasSuffix(network, "6"):
		return netip.AddrPortFrom(netip.IPv6Unspecified(), on.Port()), nil
	}
	return n.inner().Node.AllAddrs(on.Port()), nil
}

// lookup returns the first address of a host for a network such as "ip4:icmp".
func (n *Node) lookup(ctx context.Context, op, network, host string) (netip.Addr, error) {
	family, _, _ := strings.Cut(network, ":")
	list, err := n.addrsOf(ctx, strings.TrimPrefix(family, "ip"), host)
	if err != nil {
		return netip.Addr{}, &net.OpError{Op: op, Net: network, Err: err}
	}
	return list[0], nil
}
