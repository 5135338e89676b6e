package stack

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// Discovery configures neighbor discovery (RFC 4861) and reports of multicast groups (RFC 3810, RFC
// 3376) on a link without link-layer addresses. With the zero Discovery, the node probes neighbors,
// and detects duplicates of its configured IPv6 addresses. It uses these addresses during the
// detection.
type Discovery struct {
	// Auto makes the node a host on the link: it gets addresses (RFC 4862) and a route from
	// routers.
	Auto bool
	// Advertise announces the interface's IPv6 networks, and this node as a default router if it
	// forwards packets (RFC 4861 §6.2).
	Advertise bool
	// Secret makes the interface identifiers of this node differ from those of others (RFC 7217).
	Secret []byte
}

// discoverers contains the interfaces with neighbor discovery.
type discoverers struct {
	ifs     *Interfaces
	routing *Routing
	rips    []*RIP
	out     *sender
	events  *events
	rng     *rand.Rand
	down    func(now clock.Time, i int) // called to take interface i down
	list    []*discoverer
}

// discoverer is neighbor discovery on one interface.
type discoverer struct {
	iface      int
	configured Interface       // the interface as configured
	six        *icmp.Interface // IPv6 on the interface; nil: no IPv6 address
	four       *icmp.Listener  // IPv4 groups of the interface; nil: no IPv4 address

	duplicates []netip.Prefix // configured addresses that another node has
	onLink     []netip.Prefix // prefixes on the link, from routers
	router     Route          // the default route from a router, or the zero Route
	mtu        int            // MTU from a router; 0: none
	ttl        uint8          // hop limit from a router; 0: none
	joined     []netip.Addr   // groups that were reported
	changes    int            // number of group changes when joined was current

	hop   netip.Addr // next hop of the last packet
	until clock.Time // before this time, further packets to hop need no report
}

// The lifetimes are those of prefixes that the node announces (RFC 4861 §6.2.1).
const (
	validLifetime     = 30 * 24 * time.Hour
	preferredLifetime = 7 * 24 * time.Hour
	defaultMetric     = 1024 // metric of the default route from a router
	hopPeriod         = time.Second
)

// configure applies a new list of configured interfaces, which checkInterfaces has checked.
func (dv *discoverers) configure(now clock.Time, list []Interface) {
	var kept []*discoverer
	for i := range list {
		switch d := dv.on(i); {
		case d != nil && d.configured.same(&list[i]):
			d.configured, kept = list[i], append(kept, d)
			list[i] = d.current()
			continue
		case d != nil:
			dv.setRouter(now, d, netip.Addr{})
		}
		if list[i].Discovery != nil {
			kept = append(kept, &discoverer{iface: i, configured: list[i]})
		}
	}
	dv.list = kept
}

// begin starts discovery on the interfaces that are new.
func (dv *discoverers) begin(now clock.Time) {
	for _, d := range dv.list {
		if d.six == nil && d.four == nil {
			dv.start(now, d)
		}
	}
}

// same reports whether two interfaces have the same configuration for discovery.
func (c *Interface) same(other *Interface) bool {
	a, b := c.Discovery, other.Discovery
	return b != nil && a.Auto == b.Auto && a.Advertise == b.Advertise && c.Name == other.Name &&
		c.MTU == other.MTU && slices.Equal(c.Addrs(), other.Addrs())
}

// start starts or restarts discovery on an interface.
func (dv *discoverers) start(now clock.Time, d *discoverer) {
	dv.setRouter(now, d, netip.Addr{})
	*d = discoverer{iface: d.iface, configured: d.configured}
	c := &d.configured
	if c.Addr.IsValid() {
		d.four = icmp.NewListener(dv.rng, false)
	}
	if len(c.IPv6) == 0 {
		return
	}
	cfg := icmp.InterfaceConfig{
		Rand: dv.rng, LinkLocal: dv.ifs.list[d.iface].link.WithZone(""), MTU: c.MTU,
		Name: c.Name, Secret: c.Discovery.Secret,
		Router: !c.Discovery.Auto && (dv.ifs.router || c.Discovery.Advertise),
		Manual: !c.Discovery.Auto,
	}
	if c.Discovery.Advertise {
		cfg.Advertise = dv.advertising(c)
	}
	d.six = icmp.NewInterface(now, cfg)
	for _, p := range c.IPv6 {
		d.six.Add(now, p)
	}
}

// advertising returns what the node announces on an interface. Hosts can form addresses only in
// networks with a prefix of 64 bits.
func (dv *discoverers) advertising(c *Interface) *icmp.Advert {
	a := &icmp.Advert{HopLimit: defaultTTL, MTU: c.MTU}
	if !dv.ifs.router {
		a.Lifetime = -1 // this node is not a default router
	}
	for _, p := range c.IPv6 {
		if !isLinkLocal(p) {
			a.Prefixes = append(a.Prefixes, icmp.PrefixInfo{
				Prefix: p.Masked(), OnLink: true, Autonomous: p.Bits() == 64,
				Valid: validLifetime, Preferred: preferredLifetime,
			})
		}
	}
	return a
}

// on returns the discoverer of interface i, or nil if it has none.
func (dv *discoverers) on(i int) *discoverer {
	for _, d := range dv.list {
		if d.iface == i {
			return d
		}
	}
	return nil
}

// current returns the interface with the addresses, prefixes and MTU that discovery has found. It
// returns no IPv6 addresses if another node has the interface's link-local address (RFC 4862
// §5.4.5). Addresses in a prefix that is not on the link have no network.
func (d *discoverer) current() Interface {
	c := d.configured
	if d.six == nil {
		return c
	}
	if d.mtu > 0 {
		c.MTU = min(c.MTU, d.mtu)
	}
	c.onLink, c.hopLimit = d.onLink, d.ttl
	c.IPv6 = slices.DeleteFunc(slices.Clone(c.IPv6), func(p netip.Prefix) bool {
		return slices.Contains(d.duplicates, p)
	})
	if len(c.IPv6) == 0 || slices.ContainsFunc(d.duplicates, isLinkLocal) {
		c.IPv6 = nil
		return c
	}
	for _, a := range d.six.Addresses() {
		p := a.Prefix
		if a.State == icmp.Tentative || slices.Contains(d.configured.IPv6, p) {
			continue
		}
		if !slices.Contains(d.onLink, p.Masked()) {
			p = netip.PrefixFrom(p.Addr(), 128)
		}
		c.IPv6 = append(c.IPv6, p)
		if a.State == icmp.Deprecated {
			c.deprecated = append(c.deprecated, p.Addr())
		}
	}
	return c
}

func isLinkLocal(p netip.Prefix) bool { return p.Addr().IsLinkLocalUnicast() }

// input processes an ICMPv6 message of neighbor discovery or a multicast querier.
func (dv *discoverers) input(now clock.Time, i int, h *ip.Header, m *icmp.Message) ip.DropReason {
	d := dv.on(i)
	if d == nil || d.six == nil {
		return ip.DropNone // links with configured neighbors ignore the message
	}
	if h.FragmentHeader && m.Type != icmp.TypeListenerQuery {
		return ip.DropNDFragment // dropped by RFC 6980 §5
	}
	r := d.six.Input(now, m, h.Src, h.Dst, h.TTL)
	dv.run(now, d)
	return refusalDrop(r)
}

func refusalDrop(r icmp.Refusal) ip.DropReason {
	if r == icmp.Accepted {
		return ip.DropNone
	}
	if r == icmp.RefusedHopLimit {
		return ip.DropNDHopLimit
	}
	if r == icmp.RefusedFlood {
		return ip.DropNDFlood
	}
	return ip.DropND
}

// inputOwn passes to discovery a packet from one of this node's addresses, which the caller drops.
// Another node may be defending that address (RFC 4862 §5.4.4).
func (dv *discoverers) inputOwn(now clock.Time, i int, h *ip.Header, payload []byte) {
	if h.Protocol != ip.ProtoICMPv6 || !h.Is6() || dv.on(i) == nil {
		return
	}
	if m, ok := icmp.Parse(payload, h.Src, h.Dst); ok && m.Type == icmp.TypeNeighborAdvert {
		dv.input(now, i, h, &m)
	}
}

// inputIGMP processes a message of an IPv4 multicast querier.
func (dv *discoverers) inputIGMP(
	now clock.Time, i int, h *ip.Header, payload []byte,
) ip.DropReason {
	d := dv.on(i)
	if d == nil || d.four == nil {
		return ip.DropProtocol
	}
	q, r := icmp.ParseQuery(payload, h.TTL)
	if r == icmp.RefusedType {
		return ip.DropNone // the message is a report of another node
	}
	if r == icmp.Accepted {
		d.four.Query(now, q)
	}
	return refusalDrop(r)
}

func (dv *discoverers) deadline() clock.Time {
	t := clock.Never
	for _, d := range dv.list {
		if !dv.ifs.list[d.iface].up {
			continue
		}
		if d.changes != dv.ifs.groupChanges() {
			return 1
		}
		if d.six != nil {
			t = clock.Earliest(t, d.six.Deadline())
		}
		if d.four != nil {
			t = clock.Earliest(t, d.four.Deadline())
		}
	}
	return t
}

func (dv *discoverers) advance(now clock.Time) {
	for _, d := range dv.list {
		if !dv.ifs.list[d.iface].up {
			continue
		}
		if d.six != nil && d.six.Deadline().Due(now) {
			d.six.Advance(now)
		}
		dv.run(now, d)
	}
}

// run sends the messages that are due and makes the changes that discovery has found.
func (dv *discoverers) run(now clock.Time, d *discoverer) {
	if d.changes != dv.ifs.groupChanges() {
		dv.report(now, d)
	}
	var o icmp.Outgoing
	for d.six != nil && d.six.Output(now, &o) {
		dv.send(now, d.iface, &o)
	}
	for d.four != nil && d.four.Output(now, dv.ifs.list[d.iface].addr, &o) {
		dv.send(now, d.iface, &o)
	}
	if d.six != nil {
		dv.applyChanges(now, d)
	}
}

// report passes the groups that protocols and sockets have joined or left to MLD and IGMP.
func (dv *discoverers) report(now clock.Time, d *discoverer) {
	d.changes = dv.ifs.groupChanges()
	wanted := dv.ifs.groupsOf(d.iface)
	set := func(group netip.Addr, on bool) {
		switch {
		case group.Is6() && d.six != nil && on:
			d.six.JoinGroup(now, group)
		case group.Is6() && d.six != nil:
			d.six.LeaveGroup(now, group)
		case group.Is4() && d.four != nil && on:
			d.four.Join(now, group)
		case group.Is4() && d.four != nil:
			d.four.Leave(now, group)
		}
	}
	for _, g := range d.joined {
		if !slices.Contains(wanted, g) {
			set(g, false)
		}
	}
	for _, g := range wanted {
		set(g, true)
	}
	d.joined = wanted
}

// These are the router alert options (RFC 2711, RFC 2113), in the form of each family's header.
var (
	routerAlert6 = []byte{ip.ProtoICMPv6, 0, 5, 2, 0, 0, 1, 0}
	routerAlert4 = []byte{148, 4, 0, 0}
)

// send queues a message.
func (dv *discoverers) send(now clock.Time, i int, o *icmp.Outgoing) {
	h := ip.Header{Protocol: o.Protocol, TTL: o.HopLimit, Src: o.Src, Dst: o.Dst}
	switch {
	case o.RouterAlert && h.Is6():
		h.Options, h.Next = routerAlert6, ip.NextHopByHop
	case o.RouterAlert:
		h.Options, h.TOS = routerAlert4, routingTOS
	}
	h.TotalLen = h.Size() + len(o.Payload)
	b := append(h.Append(nil), o.Payload...)
	if dv.out.bytes+len(b) > maxQueuedBytes {
		dv.ifs.dropOne(now, i, Outbound, ip.DropQueueFull, b)
		return
	}
	dv.out.enqueue(now, packet{iface: i, hop: o.Dst, data: b})
}

// AddressEvent is an address that discovery added or removed.
type AddressEvent struct {
	Iface string
	Addr  netip.Prefix
	// Gone means that the address was removed, so its connections end. Duplicate means that another
	// node has it.
	Gone, Duplicate bool
}

// Verb says what happened to the address.
func (e *AddressEvent) Verb() string {
	switch {
	case e.Duplicate:
		return "removed: another node on the link has it"
	case e.Gone:
		return "removed: its lifetime has ended"
	}
	return "added"
}

// applyChanges makes the changes that discovery has found. It makes them as Reconfigure does.
func (dv *discoverers) applyChanges(now clock.Time, d *discoverer) {
	changed, before := false, d.router.Via
	via := before
	for c, ok := d.six.NextChange(); ok; c, ok = d.six.NextChange() {
		changed = true
		e := AddressEvent{Iface: d.configured.Name, Addr: c.Prefix}
		own := slices.Contains(d.configured.IPv6, c.Prefix)
		switch c.Kind {
		case icmp.AddressPreferred:
			if !own {
				dv.events.add(Event{Address: &e})
			}
		case icmp.AddressDuplicate, icmp.AddressRemoved:
			if own {
				d.duplicates = append(d.duplicates, c.Prefix)
			}
			e.Gone, e.Duplicate = true, c.Kind == icmp.AddressDuplicate
			dv.events.add(Event{Address: &e})
		case icmp.PrefixOnLink:
			d.onLink = append(slices.Clip(d.onLink), c.Prefix)
		case icmp.PrefixOffLink:
			d.onLink = slices.DeleteFunc(slices.Clone(d.onLink), func(p netip.Prefix) bool {
				return p == c.Prefix
			})
		case icmp.RouterSelected:
			via = c.Router
		case icmp.LinkMTU:
			d.mtu = c.Value
		case icmp.HopLimit:
			d.ttl = uint8(c.Value)
		case icmp.AddressDeprecated:
		}
	}
	if !changed {
		return
	}
	dv.reconfigure(now, d)
	if via != before.WithZone("") {
		dv.setRouter(now, d, via)
	}
}

// reconfigure gives the interface its current addresses, networks and MTU.
func (dv *discoverers) reconfigure(now clock.Time, d *discoverer) {
	f := &dv.ifs.list[d.iface]
	before := f.networks
	list := dv.ifs.configs()
	list[d.iface] = d.current()
	if !list[d.iface].exists() {
		dv.down(now, d.iface)
		return
	}
	if dv.ifs.checkInterfaces(list) != nil {
		return // another interface has the address
	}
	dv.routing.reconfigure(now, list)
	if slices.Equal(before, f.networks) {
		return
	}
	for _, rp := range dv.rips {
		rp.replaceLocal(now, d.iface, before)
	}
}

// setRouter replaces the default route of an interface.
func (dv *discoverers) setRouter(now clock.Time, d *discoverer, via netip.Addr) {
	if d.router.Via.IsValid() {
		// Remove fails if the operator has already removed the route.
		_ = dv.routing.Remove(now, d.router.Prefix, d.router.Via)
	}
	d.router = Route{}
	if via.IsValid() {
		r := Route{
			Prefix: netip.PrefixFrom(netip.IPv6Unspecified(), 0), Metric: defaultMetric,
			Via: via.WithZone(d.configured.Name),
		}
		if dv.routing.Add(now, r) == nil { // fails if the operator has added the route
			d.router = r
		}
	}
}

// setUp restarts discovery on an interface that went up, or ends the advertisements on one that is
// about to go down.
func (dv *discoverers) setUp(now clock.Time, i int, up bool) {
	switch d := dv.on(i); {
	case d == nil:
	case up:
		dv.start(now, d)
		dv.reconfigure(now, d)
	case d.six != nil:
		d.six.Cease()
		dv.run(now, d)
	}
}

// sent tells discovery the next hops of the packets in b. Discovery probes them if nothing else
// shows that they are reachable (RFC 4861 §7.3). Discovery's own messages do not count.
func (dv *discoverers) sent(now clock.Time, b *buffer.Batch) {
	for k := range b.Trains() {
		t := &b.Trains()[k]
		d := dv.on(t.Iface)
		if d == nil || d.six == nil || !t.NextHop.Is6() || t.NextHop.IsMulticast() ||
			t.NextHop == d.hop && !d.until.Due(now) {
			continue
		}
		const next, hopLimit, own = 6, 7, 255
		if p := t.Pieces[0]; p[next] != ip.ProtoICMPv6 || p[hopLimit] != own {
			d.hop, d.until = t.NextHop, now.Add(hopPeriod)
			d.six.Sent(now, t.NextHop, p)
		}
	}
}

// isMember reports whether discovery needs packets to a group at interface i.
func (dv *discoverers) isMember(i int, group netip.Addr) bool {
	d := dv.on(i)
	return d != nil && d.six != nil && group.Is6() && d.six.IsMember(group)
}
