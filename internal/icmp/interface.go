package icmp

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// InterfaceConfig configures an Interface.
type InterfaceConfig struct {
	Rand *rand.Rand // source of random delays and nonces; must be set
	// LinkLocal is the link-local address; invalid: one with a stable identifier.
	LinkLocal netip.Addr
	// Name and Secret are the inputs of interface identifiers (RFC 7217 §5).
	Name   string
	Secret []byte
	MTU    int // MTU of the link; 0: 1280
	// Router means that the node forwards packets. It ignores the advertisements of other routers
	// (RFC 4861 §6.2.7), and sends its own if Advertise is set.
	Router bool
	// Advertise is the content of the node's own advertisements. A lifetime of 0 means 30 minutes.
	// A negative one means that the node is no default router.
	Advertise *Advert
	// Manual makes a host ignore routers: its addresses and routes are configured.
	Manual bool
}

// Interface is IPv6 on one link without link-layer addresses: neighbor discovery (RFC 4861),
// address configuration (RFC 4862) and group membership (RFC 3810). Its owner passes received
// messages to Input, sends the messages that Output returns, reports to Sent which next hops it
// uses, and applies the changes that NextChange returns. Interface ignores zones of addresses, and
// returns addresses without a zone.
type Interface struct {
	cfg        InterfaceConfig
	neighbors  map[netip.Addr]*neighbor
	order      []*neighbor // all, in the order of their creation
	probe      clock.Time  // when the next timer of a neighbor expires, or an earlier time
	reachable  time.Duration
	retransmit time.Duration

	addresses []address
	onLink    []expiring[netip.Prefix]
	routers   []expiring[netip.Addr]
	selected  netip.Addr // default router
	hopLimit  int        // hop limit that a router announced; 0: none
	mtu       int        // MTU that a router announced; 0: none
	// soliciting is set while the host solicits routers. interval is the time between the last
	// solicitation and the next.
	soliciting bool
	interval   time.Duration
	solicit    clock.Time

	advertiser advertiser
	groups     *Listener
	out        []Outgoing
	changes    []Change
	flooded    bool // a message announced more than a limit allows
}

// expiring is a prefix or router from a router advertisement, with its lifetime.
type expiring[T any] struct {
	value T
	until clock.Time
	// unreachable is set if the router has not answered probes since its last message.
	unreachable bool
}

// The limits of what messages can create.
const (
	maxNeighbors = 512
	maxAddresses = 16
	maxPrefixes  = 32
	maxRouters   = 16
	maxOutgoing  = 256
	maxChanges   = 256
)

// linkLocal is the prefix of link-local addresses (RFC 4291 §2.5.6).
var linkLocal = netip.MustParsePrefix("fe80::/64")

// MinMTU6 is the minimum MTU of a link (RFC 8200 §5).
const MinMTU6 = 1280

// Outgoing is a message to send.
type Outgoing struct {
	Src, Dst    netip.Addr // Src can be the unspecified address
	HopLimit    uint8
	Protocol    uint8
	RouterAlert bool   // the packet needs the router alert option
	Payload     []byte // includes the checksum
}

// ChangeKind is a kind of Change.
type ChangeKind uint8

// These are the kinds of changes.
const (
	AddressPreferred  ChangeKind = iota // Prefix was assigned, or is preferred again
	AddressDeprecated                   // new connections should use other addresses
	AddressRemoved                      // the address expired or was removed
	AddressDuplicate                    // another node has the address; it was never assigned
	PrefixOnLink                        // all addresses of Prefix are neighbors
	PrefixOffLink
	RouterSelected // Router is the default router; invalid: none is known
	LinkMTU        // Value is the link's MTU that a router announced
	HopLimit       // Value is the hop limit that a router announced
)

// Change is a result of an Interface for its owner. Prefix is an address with the length of its
// prefix, or an on-link prefix.
type Change struct {
	Kind   ChangeKind
	Prefix netip.Prefix
	Router netip.Addr
	Value  int
}

// NewInterface returns an interface that begins to configure a link-local address (RFC 4862 §5.3).
func NewInterface(now clock.Time, cfg InterfaceConfig) *Interface {
	cfg.MTU = cmp.Or(cfg.MTU, MinMTU6)
	i := &Interface{
		cfg: cfg, neighbors: map[netip.Addr]*neighbor{}, groups: NewListener(cfg.Rand, true),
		reachable: reachableTime, retransmit: retransTimer,
	}
	if cfg.Router {
		i.groups.Join(now, allRouters)
	} else if !cfg.Manual {
		i.soliciting = true
	}
	if cfg.LinkLocal.IsValid() {
		i.Add(now, netip.PrefixFrom(cfg.LinkLocal, linkLocal.Bits()))
	} else {
		i.form(now, linkLocal, Infinite, Infinite)
	}
	return i
}

// Input processes a message that Parse accepted. It returns why the message was ignored.
func (i *Interface) Input(
	now clock.Time, m *Message, src, dst netip.Addr, hopLimit uint8,
) Refusal {
	src, dst = src.WithZone(""), dst.WithZone("")
	if m.Type == TypeListenerQuery {
		q, r := parseQuery6(m, src, hopLimit)
		if r == Accepted {
			i.groups.Query(now, q)
		}
		return r
	}
	d, r := ParseDiscovery(m, src, dst, hopLimit)
	if r != Accepted {
		return r
	}
	n := i.neighbors[src] // nil if this node has sent no packet to src
	switch d.Type {
	case TypeNeighborSolicit:
		i.handleSolicit(now, &d, src)
	case TypeNeighborAdvert:
		i.handleAdvert(now, &d)
	case TypeRouterSolicit6:
		if !i.cfg.Router {
			break // RFC 4861 §6.2.6
		}
		if n != nil {
			n.router = false
		}
		i.advertiser.solicited(now, i)
	case TypeRouterAdvert6:
		if n != nil {
			n.router = true
		}
		i.flooded = false
		i.handleRouterAdvert(now, &d.Advert, src)
		if i.flooded {
			return RefusedFlood
		}
	case TypeRedirect6: // ignored: any node of the link can forge it
	}
	return Accepted
}

// JoinGroup makes the interface a member of a multicast group. It returns false if there are too
// many groups.
func (i *Interface) JoinGroup(now clock.Time, group netip.Addr) bool {
	return i.groups.Join(now, group)
}

// LeaveGroup undoes JoinGroup.
func (i *Interface) LeaveGroup(now clock.Time, group netip.Addr) { i.groups.Leave(now, group) }

// IsMember reports whether the interface receives packets to a multicast group.
func (i *Interface) IsMember(group netip.Addr) bool {
	return group.WithZone("") == allNodes || i.groups.IsMember(group)
}

// send queues a message of neighbor discovery. The queue fills up only if the owner does not call
// Output.
func (i *Interface) send(d *Discovery, src, dst netip.Addr) {
	if len(i.out) < maxOutgoing {
		i.out = append(i.out, Outgoing{
			Src: src, Dst: dst, HopLimit: discoveryHopLimit, Protocol: protocolICMP6,
			Payload: d.Message().Append(nil, src, dst),
		})
	}
}

// Output returns the next message; false: nothing is due.
func (i *Interface) Output(now clock.Time, out *Outgoing) bool {
	if len(i.out) > 0 {
		*out = i.out[0]
		i.out = i.out[1:]
		return true
	}
	src, _ := i.source(netip.Addr{})
	if !src.IsLinkLocalUnicast() {
		src = netip.IPv6Unspecified() // RFC 3810 §5.2.13
	}
	return i.groups.Output(now, src, out)
}

// Deadline returns when to call Advance and Output next.
func (i *Interface) Deadline() clock.Time {
	if len(i.out) > 0 {
		return 1
	}
	t := clock.Earliest(i.probe, i.solicit, i.advertiser.due, i.groups.Deadline())
	for k := range i.addresses {
		t = clock.Earliest(t, i.addresses[k].deadline())
	}
	for _, p := range i.onLink {
		t = clock.Earliest(t, p.until)
	}
	for _, r := range i.routers {
		t = clock.Earliest(t, r.until)
	}
	return t
}

// Advance runs the timers that are due.
func (i *Interface) Advance(now clock.Time) {
	i.advanceAddresses(now)
	i.advanceRouters(now)
	i.advanceNeighbors(now)
	i.advertiser.advance(now, i)
}

// NextChange returns the oldest change that was not returned yet.
func (i *Interface) NextChange() (Change, bool) {
	if len(i.changes) == 0 {
		return Change{}, false
	}
	c := i.changes[0]
	i.changes = i.changes[1:]
	return c, true
}

// addChange queues a change. The queue fills up only if the owner does not call NextChange.
func (i *Interface) addChange(c Change) {
	if len(i.changes) < maxChanges {
		i.changes = append(i.changes, c)
	}
}

func (i *Interface) randomBetween(least, most time.Duration) time.Duration {
	return least + time.Duration(i.cfg.Rand.Int64N(int64(most-least)+1))
}

// remove deletes the elements that are due and returns them.
func remove[T any](list []expiring[T], now clock.Time) (rest []expiring[T], gone []T) {
	rest = slices.DeleteFunc(list, func(l expiring[T]) bool {
		if l.until.Due(now) {
			gone = append(gone, l.value)
			return true
		}
		return false
	})
	return rest, gone
}
