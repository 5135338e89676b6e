package icmp

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// These are the first interval between router solicitations (RFC 4861 §10), and the largest (RFC
// 7559 §2).
const (
	routerSolicitationInterval = 4 * time.Second
	maxSolicitationInterval    = time.Hour
)

// handleRouterAdvert processes a router advertisement (RFC 4861 §6.3.4, RFC 4862 §5.5.3). Routers
// (RFC 4861 §6.2.7) and nodes with manual configuration ignore advertisements.
func (i *Interface) handleRouterAdvert(now clock.Time, a *Advert, src netip.Addr) {
	if i.cfg.Router || i.cfg.Manual {
		return
	}
	if a.Lifetime > 0 {
		i.soliciting, i.solicit = false, clock.Never
	}
	i.routers = renew(i, i.routers, src, maxRouters, now, a.Lifetime)
	i.selectRouter()
	if v := int(a.HopLimit); v > 0 && v != i.hopLimit {
		i.hopLimit = v
		i.addChange(Change{Kind: HopLimit, Value: v})
	}
	if a.MTU >= MinMTU6 && a.MTU <= i.cfg.MTU && a.MTU != i.mtu {
		i.mtu = a.MTU
		i.addChange(Change{Kind: LinkMTU, Value: a.MTU})
	}
	// RFC 4861 §6.2.1 limits the reachable time to an hour. The other limits keep a bad router from
	// making hosts flood the link, or wait for a neighbor for hours.
	if a.Reachable > 0 {
		i.reachable = min(max(a.Reachable, time.Second), time.Hour)
	}
	if a.Retransmit > 0 {
		i.retransmit = min(max(a.Retransmit, retransTimer/10), retransTimer*10)
	}
	for _, p := range a.Prefixes {
		if p.Prefix.Addr().IsLinkLocalUnicast() || p.Prefix.Addr().IsMulticast() {
			continue
		}
		if p.OnLink {
			i.learnOnLink(now, p.Prefix, p.Valid)
		}
		if p.Autonomous && p.Prefix.Bits() == 64 && p.Preferred <= p.Valid {
			i.form(now, p.Prefix, p.Preferred, p.Valid)
		}
	}
}

func (i *Interface) learnOnLink(now clock.Time, prefix netip.Prefix, valid time.Duration) {
	before := len(i.onLink)
	i.onLink = renew(i, i.onLink, prefix, maxPrefixes, now, valid)
	switch len(i.onLink) - before {
	case 1:
		i.addChange(Change{Kind: PrefixOnLink, Prefix: prefix})
	case -1:
		i.addChange(Change{Kind: PrefixOffLink, Prefix: prefix})
	}
}

// renew adds an announced prefix or router, unless the list is full, or changes its lifetime. A
// lifetime of zero removes it.
func renew[T comparable](
	i *Interface, list []expiring[T], value T, most int, now clock.Time, lifetime time.Duration,
) []expiring[T] {
	at := slices.IndexFunc(list, func(l expiring[T]) bool { return l.value == value })
	fresh := expiring[T]{value: value, until: now.Add(lifetime)}
	switch {
	case at >= 0 && lifetime == 0:
		return slices.Delete(list, at, at+1)
	case at >= 0:
		list[at] = fresh
	case lifetime == 0:
	case len(list) >= most:
		i.flooded = true
	default:
		return append(list, fresh)
	}
	return list
}

// selectRouter chooses the default router. It prefers reachable routers, and otherwise keeps the
// current one (RFC 4861 §6.3.6).
func (i *Interface) selectRouter() {
	var best netip.Addr
	rank := 0
	for _, r := range i.routers {
		mine := 1 // ranks: unreachable, unreachable and current, reachable, reachable and current
		if !r.unreachable {
			mine += 2
		}
		if r.value == i.selected {
			mine++
		}
		if mine > rank {
			best, rank = r.value, mine
		}
	}
	if best != i.selected {
		i.selected = best
		i.addChange(Change{Kind: RouterSelected, Router: best})
	}
}

// dropRouter removes a router that has become a host (RFC 4861 §6.3.5).
func (i *Interface) dropRouter(now clock.Time, addr netip.Addr) {
	i.routers = renew(i, i.routers, addr, maxRouters, now, 0)
	i.selectRouter()
}

// setReachable records whether a router answers.
func (i *Interface) setReachable(addr netip.Addr, reachable bool) {
	for k := range i.routers {
		if r := &i.routers[k]; r.value == addr {
			r.unreachable = !reachable
			i.selectRouter()
		}
	}
}

// advanceRouters removes expired routers and prefixes, and solicits routers after the link-local
// address is assigned (RFC 4861 §6.3.5 and §6.3.7). Before that, another node with the same address
// could receive the answer.
func (i *Interface) advanceRouters(now clock.Time) {
	var offLink []netip.Prefix
	i.onLink, offLink = remove(i.onLink, now)
	for _, p := range offLink {
		i.addChange(Change{Kind: PrefixOffLink, Prefix: p})
	}
	i.routers, _ = remove(i.routers, now)
	i.selectRouter()
	if !i.solicit.Due(now) {
		return
	}
	i.backOff(now)
	if src, ok := i.source(netip.Addr{}); ok {
		i.send(&Discovery{Type: TypeRouterSolicit6}, src, allRouters)
	}
}

// backOff schedules the next solicitation, which is sent if no router answers before. The interval
// doubles up to a limit. A random part of up to a tenth makes it differ from that of other hosts
// (RFC 7559 §2).
func (i *Interface) backOff(now clock.Time) {
	vary := func(d time.Duration) time.Duration { return i.randomBetween(-d/10, d/10) }
	next := 2*i.interval + vary(i.interval)
	if i.interval == 0 {
		next = routerSolicitationInterval + vary(routerSolicitationInterval)
	}
	if next > maxSolicitationInterval {
		next = maxSolicitationInterval + vary(maxSolicitationInterval)
	}
	i.interval, i.solicit = next, now.Add(next)
}

// These are the constants of RFC 4861 §10 for routers, and the defaults of §6.2.1.
const (
	maxInitialInterval = 16 * time.Second
	maxInitialAdverts  = 3
	minDelayBetweenRAs = 3 * time.Second
	maxRADelay         = 500 * time.Millisecond
	maxInterval        = 600 * time.Second
	minInterval        = maxInterval / 3
	routerLifetime     = 3 * maxInterval
)

// advertiser sends the router advertisements of an interface.
type advertiser struct {
	running bool
	sent    int
	last    clock.Time
	due     clock.Time
}

// start begins to advertise when the interface has a link-local address.
func (a *advertiser) start(now clock.Time) {
	if !a.running {
		a.running, a.due = true, now
	}
}

// solicited schedules the answer to a solicitation: a multicast advertisement after a random delay.
// It limits the rate of these advertisements (RFC 4861 §6.2.6).
func (a *advertiser) solicited(now clock.Time, i *Interface) {
	if !a.running {
		return
	}
	at := now.Add(i.randomBetween(0, maxRADelay))
	if a.sent > 0 {
		at = max(at, a.last.Add(minDelayBetweenRAs))
	}
	a.due = clock.Earliest(a.due, at)
}

// advance sends the advertisement that is due (RFC 4861 §6.2.4).
func (a *advertiser) advance(now clock.Time, i *Interface) {
	if !a.due.Due(now) {
		return
	}
	a.send(i, max(0, cmp.Or(i.cfg.Advertise.Lifetime, routerLifetime)))
	a.sent++
	a.last = now
	wait := i.randomBetween(minInterval, maxInterval)
	if a.sent < maxInitialAdverts {
		wait = min(wait, maxInitialInterval)
	}
	a.due = now.Add(wait)
}

func (a *advertiser) send(i *Interface, lifetime time.Duration) {
	src, ok := i.source(netip.Addr{})
	if !ok || !src.IsLinkLocalUnicast() {
		return
	}
	d := Discovery{Type: TypeRouterAdvert6, Advert: *i.cfg.Advertise}
	d.Advert.Lifetime = lifetime
	i.send(&d, src, allNodes)
}

// Cease ends the advertisements. The last one announces that this node is no longer a default
// router (RFC 4861 §6.2.5).
func (i *Interface) Cease() {
	if i.advertiser.running {
		i.advertiser.send(i, 0)
	}
	i.advertiser = advertiser{}
}
