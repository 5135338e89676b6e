package tidepool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Config describes a node. Only Interfaces is required.
type Config struct {
	// Name identifies the node in messages and captures. Empty: "node".
	Name string
	// Interfaces connect the node to links.
	Interfaces []Interface
	// Routes lead to networks that no interface is attached to.
	Routes []Route
	// Router makes the node forward packets.
	Router bool
	// RIP makes the node a router that exchanges routes with the neighbors of its interfaces, in
	// the dialect of the .lnx files.
	RIP bool
	// RIPv2 is RIP by RFC 2453: multicast, on every interface.
	RIPv2 bool
	// Hosts maps names, which Dial and Listen accept, to addresses.
	Hosts map[string]netip.Addr
	// Lookup returns the addresses of a name that Hosts does not have, as net.Resolver.LookupNetIP
	// does; the network is "ip", "ip4" or "ip6". Nil: there are no other names.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// DNS configures names that the network itself serves.
	DNS DNS
	// TCP configures TCP. Zero fields: the defaults.
	TCP TCP
	// ICMP configures what the node answers, and IP which packets it accepts. Zero fields: the
	// defaults.
	ICMP ICMP
	IP   IP
	// Clock is the node's time. Nil: the system's time.
	Clock *Clock
	// Capture is the name of a pcapng file to which all packets are written. Empty: none.
	Capture string
	// Seed chooses the packets that SetLoss drops: the same seed drops the same packets. On a Clock
	// it also chooses TCP's initial sequence numbers and ports. 0: a random seed.
	Seed uint64
}

// Interface connects a node to a link. It needs exactly one of Link, UDP and TUN.
type Interface struct {
	// Name is used in messages and by SetUp and Impair. Empty: if0, if1 and so on.
	Name string
	// Addr is the node's address, IPv4 or IPv6, with the prefix length of the link's network. The
	// zero Prefix: the interface has only the addresses in the field IPv6.
	Addr netip.Prefix
	// IPv6 are further addresses. An interface with IPv6 gets a link-local address if it has none
	// (RFC 4291 §2.8), and needs an MTU of at least 1280 bytes.
	IPv6 []netip.Prefix
	// Auto gives the interface IPv6 addresses and a default route from the advertisements of a
	// router on the link, as a host (SLAAC, RFC 4862); Node.Addrs has them then. The addresses do
	// not depend on those of other interfaces: with a Seed, they are the same each time. Nodes on
	// one link need different Seeds. Advertise announces the interface's IPv6 networks to such
	// hosts, and a node that is a Router as their default router. Neither is for UDP links.
	Auto, Advertise bool
	// MTU is the largest packet in bytes. 0: 1400.
	MTU int
	// Link carries the packets: each Read or Write is one complete IP packet. The node closes it,
	// even if Open fails.
	Link io.ReadWriteCloser
	// UDP is the local HOST:PORT of a UDP link, which carries one packet per datagram.
	UDP string
	// TUN is the name of a Linux TUN device, which is opened or created.
	TUN string
	// Kernel is the kernel's IPv4 or IPv6 address on the TUN device. If Kernel is an IPv4 address,
	// Kernel6 can add an IPv6 address. If either is set, the node brings the device up.
	Kernel, Kernel6 netip.Addr
	// KernelRoutes are prefixes that the kernel routes to the node until the node is closed.
	KernelRoutes []netip.Prefix
	// Neighbors are the nodes on the link. A UDP link reaches only these. On other links an empty
	// list means that any address of the link's network may exist.
	Neighbors []Neighbor
	// Impair adds loss, delay and other impairments to the link.
	Impair Impairments
}

// Impairments are what an interface does to packets, independently in each direction. Shares are
// fractions of all packets, from 0 to 1. The zero value does nothing.
type Impairments struct {
	// Loss, Duplicate, Reorder and Corrupt are the shares of packets that are lost, duplicated,
	// sent ahead of others, and corrupted by flipped bits.
	Loss, Duplicate, Reorder, Corrupt float64
	// Delay is the propagation delay. Jitter is the largest deviation from it.
	Delay, Jitter time.Duration
	// Rate is the link's speed in bits per second. 0: no limit. Packets that would wait longer than
	// 200 ms for earlier ones are dropped.
	Rate int64
	// Seed makes the random choices repeatable. 0: a random seed, which ImpairInfo shows.
	Seed uint64
	// Words are further impairments in the syntax of tc-netem(8) and tc-codel(8), such as "loss
	// gemodel 1% 10% rate 10mbit limit 100 codel seed 7". They must not repeat what another field
	// says.
	Words string
}

// Neighbor is a node at the other end of a link.
type Neighbor struct {
	// Addr is the neighbor's address on the link.
	Addr netip.Addr
	// UDP is the HOST:PORT at which the neighbor receives packets, on a UDP link.
	UDP string
}

// internal converts the configuration to an operator.Config.
func (c *Config) internal() (operator.Config, error) {
	file := &lnx.Config{Name: c.Name, Forwarding: c.Router || c.RIP || c.RIPv2}
	file.Name = cmp.Or(file.Name, "node")
	cfg := operator.Config{LNX: file, Pcap: c.Capture, Node: node.Config{
		Seed: c.Seed, Devices: map[string]link.Device{}, Tune: c.TCP.apply,
	}}
	if c.Clock != nil {
		cfg.Node.Clock = &c.Clock.clock
	}
	if len(c.Interfaces) == 0 {
		return cfg, wrong("Interfaces: must have at least one")
	}
	for i := range c.Interfaces {
		if err := c.Interfaces[i].internal(i, &cfg, c.RIP); err != nil {
			for _, later := range c.Interfaces[i+1:] {
				later.closeLink()
			}
			return cfg, err
		}
	}
	if c.TCP.Profile == "004" {
		file.TCP.Profile = c.TCP.Profile
		file.TCP.RTOMin, file.TCP.RTOMax = lnx.RTODefaults(c.TCP.Profile)
	}
	switch {
	case c.RIP && c.RIPv2:
		return cfg, wrong("RIP and RIPv2 cannot be used together")
	case c.RIP:
		file.Routing = lnx.RoutingRIP
	case c.RIPv2:
		file.Routing = lnx.RoutingRIP2
	}
	if err := c.TCP.check(); err != nil {
		return cfg, err
	}
	if err := c.internet(file); err != nil {
		return cfg, err
	}
	if err := checkHosts(c.Hosts); err != nil {
		return cfg, err
	}
	c.DNS.internal(&file.DNS)
	for _, r := range c.Routes {
		if err := r.check(file.Interfaces); err != nil {
			return cfg, err
		}
		file.Routes = append(file.Routes, lnx.Route{
			Prefix: r.Prefix.Masked(), Via: r.Via, Metric: r.Metric, Kind: r.Kind,
		})
	}
	return cfg, nil
}

// closeLink closes the interface's link after an error, unless another node uses it.
func (f *Interface) closeLink() {
	if f.Link != nil {
		_ = link.CloseUnattached(device(f.Link)) // report the first error
	}
}

func (f *Interface) internal(i int, cfg *operator.Config, rip bool) error {
	face := lnx.Interface{Name: cmp.Or(f.Name, "if"+strconv.Itoa(i)), MTU: f.MTU}
	if f.Link != nil {
		if cfg.Node.Devices[face.Name] != nil {
			f.closeLink() // the caller closes the link of the first interface with the name
			return wrong("two interfaces have the name %s", face.Name)
		}
		cfg.Node.Devices[face.Name] = device(f.Link)
	}
	if _, taken := cfg.LNX.Interface(face.Name); taken {
		return wrong("two interfaces have the name %s", face.Name)
	}
	if err := f.addrs(&face); err != nil {
		return wrong("interface %s: %v", face.Name, err)
	}
	if f.MTU != 0 && (f.MTU < lnx.MinMTU || f.MTU > maxMTU) {
		return wrong("interface %s: MTU %d: must be %d to %d", face.Name, f.MTU, lnx.MinMTU, maxMTU)
	}
	if err := f.underneath(&face); err != nil {
		return wrong("interface %s: %v", face.Name, err)
	}
	if err := f.Impair.validate(); err != nil {
		return wrong("interface %s: %v", face.Name, err)
	}
	if words := f.Impair.String(); words != "off" {
		if _, err := node.ParseImpairment(words, files.Machine()); err != nil {
			return wrong("interface %s: Impair: %v", face.Name, err)
		}
		cfg.LNX.Impair = append(cfg.LNX.Impair, lnx.ImpairLine{
			Iface: face.Name, Way: lnx.WayBoth, Words: strings.Fields(words),
		})
	}
	for _, nb := range f.Neighbors {
		to := lnx.Neighbor{Addr: nb.Addr, Iface: face.Name}
		var err error
		if to.UDP, err = hostPort(nb.UDP); err != nil {
			return wrong("neighbor %v: %v", nb.Addr, err)
		}
		if !nb.Addr.IsValid() || (nb.UDP == "") != (f.UDP == "") {
			return wrong("neighbor %v of interface %s: needs an address, and on UDP "+
				"links a UDP address", nb.Addr, face.Name)
		}
		if err := checkNeighbor(&face, nb.Addr); err != nil {
			return wrong("interface %s: %v", face.Name, err)
		}
		cfg.LNX.Neighbors = append(cfg.LNX.Neighbors, to)
		if rip && nb.Addr.Is4() {
			cfg.LNX.RIP.AdvertiseTo = append(cfg.LNX.RIP.AdvertiseTo, nb.Addr)
		}
	}
	cfg.LNX.Interfaces = append(cfg.LNX.Interfaces, face)
	return nil
}

// underneath converts the Link, UDP or TUN field.
func (f *Interface) underneath(to *lnx.Interface) (err error) {
	kinds := given([]string{"Link", "UDP", "TUN"}, f.Link != nil, f.UDP != "", f.TUN != "")
	switch {
	case kinds == "":
		return errors.New("must have a Link, a UDP address or a TUN device")
	case strings.Contains(kinds, " "):
		return fmt.Errorf("%s cannot be used together: must have one of Link, UDP and TUN", kinds)
	case f.TUN != "":
		to.Tun = &lnx.Tun{Device: f.TUN, Routes: f.KernelRoutes}
		if err := f.kernels(to); err != nil {
			return err
		}
	case f.Kernel.IsValid() || f.Kernel6.IsValid() || len(f.KernelRoutes) > 0:
		//nolint:staticcheck // fields
		return errors.New("Kernel and KernelRoutes need a TUN device")
	}
	if err := f.discovery(to); err != nil {
		return err
	}
	to.UDP, err = hostPort(f.UDP)
	return err
}

// discovery converts the Auto and Advertise fields. An interface with a Link is treated like one
// with an unnamed TUN device.
func (f *Interface) discovery(to *lnx.Interface) error {
	switch {
	case !f.Auto && !f.Advertise:
		return nil
	case f.UDP != "":
		return errors.New("fields Auto and Advertise need a Link or a TUN device: the nodes of a " +
			"UDP link are its Neighbors")
	case f.Auto && f.Advertise:
		return errors.New("fields Auto and Advertise cannot be used together")
	case f.Advertise && !slices.ContainsFunc(to.IPv6, func(p netip.Prefix) bool {
		return !p.Addr().IsLinkLocalUnicast()
	}):
		return errors.New("field Advertise needs an IPv6 network: add an address of it to IPv6")
	case to.Tun == nil:
		to.Tun = &lnx.Tun{}
	}
	to.Tun.Auto, to.Tun.Advertise = f.Auto, f.Advertise
	return nil
}

// maxMTU is the length of the longest packet in bytes.
const maxMTU = 65535

// hostPort parses HOST:PORT. An empty string is valid and means no address.
func hostPort(text string) (lnx.HostPort, error) {
	if text == "" {
		return lnx.HostPort{}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return lnx.HostPort{}, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return lnx.HostPort{}, fmt.Errorf("port %q of %s: must be 1 to 65535", port, text)
	}
	return lnx.HostPort{Host: host, Port: uint16(n)}, nil
}

// errConfig is wrapped by all errors about a Config.
var errConfig = errors.New("tidepool: bad configuration")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errConfig, fmt.Sprintf(format, args...))
}

// addrs adds the addresses to an interface, under the conditions of an .lnx file.
func (f *Interface) addrs(to *lnx.Interface) error {
	list := f.IPv6
	if f.Addr.IsValid() || len(list) == 0 && !f.Auto {
		list = append([]netip.Prefix{f.Addr}, list...)
	}
	for k, p := range list {
		switch {
		case !p.IsValid():
			return fmt.Errorf("Addr %v: must be an address with its network's prefix length", p)
		case k > 0 && p.Addr().Is4():
			return fmt.Errorf("IPv6 address %v is IPv4: set it as Addr", p)
		}
		if why := lnx.AddrFault(p); why != "" {
			return fmt.Errorf("Addr %v is %s", p, why)
		}
		if p.Addr().Is4() {
			to.Addr = p
			continue
		}
		to.IPv6 = append(to.IPv6, p)
	}
	return nil
}

// checkNeighbor returns an error if a cannot be a neighbor on the interface's link.
func checkNeighbor(face *lnx.Interface, a netip.Addr) error {
	why := "of a family that the interface has no address of"
	for _, p := range face.Addrs() {
		if p.Addr().Is4() != a.Is4() {
			continue
		}
		if a.Is6() && a.IsLinkLocalUnicast() {
			p = netip.PrefixFrom(p.Addr(), 0) // on every link
		}
		if why = lnx.NeighborFault(a, p); why == "" {
			return nil
		}
	}
	return fmt.Errorf("neighbor %v is %s", a, why)
}

// kernels adds the Kernel and Kernel6 fields to an interface with a TUN device.
func (f *Interface) kernels(face *lnx.Interface) error {
	for _, a := range []netip.Addr{f.Kernel, f.Kernel6} {
		switch {
		case !a.IsValid():
			continue
		case face.Tun.Reaches(a), a == f.Kernel6 && a.Is4():
			//nolint:staticcheck // fields
			return fmt.Errorf("Kernel %v, Kernel6 %v: Kernel must be IPv4, Kernel6 IPv6",
				f.Kernel, f.Kernel6)
		}
		if err := checkNeighbor(face, a); err != nil {
			return fmt.Errorf("Kernel: %w", err) //nolint:staticcheck // a field
		}
		face.Tun.Kernel = append(face.Tun.Kernel, a)
	}
	for _, p := range f.KernelRoutes {
		if !face.Tun.Reaches(p.Addr()) || p != p.Masked() {
			return fmt.Errorf("the kernel's route %v: must be a prefix without host bits, "+
				"and needs a Kernel address of its family", p)
		}
	}
	return nil
}

// check returns an error if the route is invalid for a node with these interfaces.
func (r *Route) check(faces []lnx.Interface) error {
	dst := r.Prefix.Addr()
	valid := r.Prefix.IsValid() && !dst.Is4In6()
	switch {
	case r.Metric < 0 || r.Metric > lnx.MaxMetric:
		return wrong("route %v: metric %d: must be 0 to %d", r.Prefix, r.Metric, lnx.MaxMetric)
	case r.Kind == "blackhole" || r.Kind == "unreachable" || r.Kind == "prohibit":
		if !valid || r.Via.IsValid() {
			return wrong("route %v %s via %v: must have a valid prefix and no next hop", r.Prefix,
				r.Kind, r.Via)
		}
		return nil
	case r.Kind != "":
		return wrong("route %v: Kind %q: must be blackhole, unreachable, prohibit or empty",
			r.Prefix, r.Kind)
	case !valid || !r.Via.IsValid() || dst.Is4() != r.Via.Is4():
		return wrong("route %v via %v: must be a prefix and a next hop of the same family",
			r.Prefix, r.Via)
	}
	onLink := false
	for i := range faces {
		onLink = onLink || faces[i].Name == r.Via.Zone()
		for _, p := range faces[i].Addrs() {
			if p.Addr() == r.Via {
				return wrong("route %v: next hop %v is the node itself", r.Prefix, r.Via)
			}
			onLink = onLink || p.Contains(r.Via)
		}
	}
	switch {
	case r.Via.Is6() && r.Via.IsLinkLocalUnicast() && r.Via.Zone() == "":
		return wrong("route %v: next hop %v needs its interface: %v%%NAME", r.Prefix, r.Via, r.Via)
	case !onLink:
		return wrong("route %v: next hop %v is not in an interface's network", r.Prefix, r.Via)
	}
	return nil
}

func checkHosts(hosts map[string]netip.Addr) error {
	for name, a := range hosts {
		if !a.IsValid() {
			return wrong("Hosts[%q]: %v is not an address", name, a)
		}
	}
	return nil
}

// check returns an error if a field is out of range. Zero fields are valid.
func (t *TCP) check() error {
	if t.Profile != "" && t.Profile != "004" {
		return wrong("TCP.Profile %q: must be 004 or empty", t.Profile)
	}
	if _, ok := tcp.ParseECNMode(t.ECN); !ok && t.ECN != "" {
		return wrong("TCP.ECN %q: must be on, off or passive", t.ECN)
	}
	if _, ok := tcp.ParseCookieMode(t.SynCookies); !ok && t.SynCookies != "" {
		return wrong("TCP.SynCookies %q: must be auto, always or off", t.SynCookies)
	}
	for _, f := range []struct {
		name               string
		value, least, most int
	}{
		{"InitialWindow", t.InitialWindow, 1, tcp.MaxInitialWindow},
		{"SynRetries", t.SynRetries, 1, tcp.MaxRetries},
		{"DataRetries", t.DataRetries, 1, tcp.MaxRetries},
		{"ReadBuffer", t.ReadBuffer, tcp.MinBuffer, tcp.MaxBuffer},
		{"WriteBuffer", t.WriteBuffer, tcp.MinBuffer, tcp.MaxBuffer},
	} {
		if f.value != 0 && (f.value < f.least || f.value > f.most) {
			return wrong("TCP.%s %d: must be %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"RTOInitial", t.RTOInitial},
		{"RTOMin", t.RTOMin},
		{"RTOMax", t.RTOMax},
		{"DelayedAck", t.DelayedAck},
	} {
		if f.value < 0 {
			return wrong("TCP.%s %v: must not be negative", f.name, f.value)
		}
	}
	if t.RTOMax != 0 && t.RTOMax < t.RTOMin {
		return wrong("TCP.RTOMax %v: must be at least RTOMin, %v", t.RTOMax, t.RTOMin)
	}
	if t.DelayedAck >= tcp.MaxDelayedAck {
		return wrong("TCP.DelayedAck %v: must be less than %v (RFC 9293 §3.8.6.3)",
			t.DelayedAck, tcp.MaxDelayedAck)
	}
	return nil
}

// given joins the names of the fields that are set, for a message.
func given(names []string, set ...bool) string {
	var list []string
	for i, name := range names {
		if set[i] {
			list = append(list, name)
		}
	}
	return strings.Join(list, " and ")
}
