package icmp

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// AddressState is the state of an address (RFC 4862 §2).
type AddressState uint8

// These are the states of an address.
const (
	Tentative  AddressState = iota // another node may have the address
	Preferred                      // the address is assigned
	Deprecated                     // assigned, but its preferred lifetime has ended
)

// String returns the name of the state.
func (s AddressState) String() string {
	return [...]string{"tentative", "preferred", "deprecated"}[s]
}

// These are the constants of RFC 4861 §10, RFC 4862 §5.5.3 and RFC 7217 §7.
const (
	maxSolicitationDelay = time.Second
	twoHours             = 2 * time.Hour
	maxIdentifierRetries = 3
)

// address is an address of an interface.
type address struct {
	prefix    netip.Prefix // the address, with the length of its prefix
	state     AddressState
	formed    bool  // formed from a router's prefix, with a stable identifier
	duplicate uint8 // number of identifiers of this prefix that were duplicate
	solicited bool  // a solicitation for the address was sent
	nonce     []byte
	due       clock.Time // time of the next solicitation, or end of the detection
	preferred clock.Time // end of the preferred lifetime; Never: infinite or over
	valid     clock.Time // end of the valid lifetime; Never: infinite
}

func (a *address) tentative() bool { return a.state == Tentative }

func (a *address) deadline() clock.Time {
	if a.tentative() {
		return clock.Earliest(a.due, a.valid)
	}
	return clock.Earliest(a.preferred, a.valid)
}

// AddressInfo is a snapshot of an address. Preferred and Valid are the ends of its lifetimes. Never
// means that the lifetime is infinite or over.
type AddressInfo struct {
	Prefix           netip.Prefix
	State            AddressState
	Preferred, Valid clock.Time
}

// Addresses returns all addresses, tentative ones included.
func (i *Interface) Addresses() []AddressInfo {
	list := make([]AddressInfo, len(i.addresses))
	for k, a := range i.addresses {
		list[k] = AddressInfo{a.prefix, a.state, a.preferred, a.valid}
	}
	return list
}

// Add adds an address with the length of its prefix, and an infinite lifetime. The address is
// tentative until duplicate address detection ends (RFC 4862 §5.4).
func (i *Interface) Add(now clock.Time, prefix netip.Prefix) {
	if i.own(prefix.Addr()) == nil {
		i.detect(now, &address{prefix: prefix})
	}
}

// own returns this interface's entry for the address, or nil.
func (i *Interface) own(addr netip.Addr) *address {
	for k := range i.addresses {
		if i.addresses[k].prefix.Addr() == addr {
			return &i.addresses[k]
		}
	}
	return nil
}

// source returns the source address for a message: the wanted address if it is assigned, otherwise
// the first link-local address, otherwise any other.
func (i *Interface) source(wanted netip.Addr) (found netip.Addr, ok bool) {
	for k := range i.addresses {
		a := i.addresses[k].prefix.Addr()
		switch {
		case i.addresses[k].tentative():
		case a == wanted:
			return a, true
		case !ok, a.IsLinkLocalUnicast() && !found.IsLinkLocalUnicast():
			found, ok = a, true
		}
	}
	return found, ok
}

// detect adds an address and begins duplicate address detection. The random delay separates nodes
// that start at the same time (RFC 4862 §5.4.2).
func (i *Interface) detect(now clock.Time, a *address) {
	i.groups.Join(now, SolicitedNode(a.prefix.Addr()))
	a.due = now.Add(i.randomBetween(0, maxSolicitationDelay))
	i.addresses = append(i.addresses, *a)
}

// assign ends duplicate address detection: the address can be used.
func (i *Interface) assign(now clock.Time, a *address) {
	a.state, a.due = Preferred, clock.Never
	i.addChange(Change{Kind: AddressPreferred, Prefix: a.prefix})
	if !a.prefix.Addr().IsLinkLocalUnicast() {
		return
	}
	i.groups.Query(now, Query{}) // routers ignored the reports from the unspecified address
	if i.soliciting && i.solicit == clock.Never {
		i.solicit = now
	}
	if i.cfg.Advertise != nil {
		i.advertiser.start(now)
	}
}

func (i *Interface) deprecate(a *address) {
	a.state, a.preferred = Deprecated, clock.Never
	i.addChange(Change{Kind: AddressDeprecated, Prefix: a.prefix})
}

// duplicate withdraws an address that another node has. If the address was formed, duplicate tries
// the next identifier (RFC 4862 §5.4.5, RFC 7217 §6).
func (i *Interface) duplicate(now clock.Time, a *address) {
	old := *a
	i.withdraw(now, a, AddressDuplicate)
	if !old.formed || old.duplicate+1 >= maxIdentifierRetries {
		return
	}
	i.detect(now, &address{
		prefix: i.stable(old.prefix, old.duplicate+1), formed: true, duplicate: old.duplicate + 1,
		preferred: old.preferred, valid: old.valid,
	})
}

func (i *Interface) withdraw(now clock.Time, a *address, why ChangeKind) {
	prefix := a.prefix
	i.addresses = slices.DeleteFunc(i.addresses, func(b address) bool { return b.prefix == prefix })
	i.addChange(Change{Kind: why, Prefix: prefix})
	group := SolicitedNode(prefix.Addr())
	if !slices.ContainsFunc(i.addresses, func(b address) bool {
		return SolicitedNode(b.prefix.Addr()) == group
	}) {
		i.groups.Leave(now, group)
	}
}

// advanceAddresses runs the timers of addresses.
func (i *Interface) advanceAddresses(now clock.Time) {
	for k := 0; k < len(i.addresses); k++ {
		a := &i.addresses[k]
		switch {
		case a.valid.Due(now):
			i.withdraw(now, a, AddressRemoved)
			k--
		case a.tentative() && a.due.Due(now) && a.solicited:
			i.assign(now, a)
		case a.tentative() && a.due.Due(now):
			a.solicited = true
			a.due = now.Add(i.retransmit)
			a.nonce = binary.BigEndian.AppendUint64(nil, i.cfg.Rand.Uint64())[:6]
			target := a.prefix.Addr()
			i.send(&Discovery{Type: TypeNeighborSolicit, Target: target, Nonce: a.nonce},
				netip.IPv6Unspecified(), SolicitedNode(target))
		case a.state == Preferred && a.preferred.Due(now):
			i.deprecate(a)
		}
	}
}

// form adds the address of this interface in a router's prefix, or renews its lifetimes (RFC 4862
// §5.5.3). An attacker could announce a short lifetime to remove an address. So no advertisement
// reduces the valid lifetime below two hours, or below what is left of it.
func (i *Interface) form(now clock.Time, prefix netip.Prefix, preferred, valid time.Duration) {
	at := slices.IndexFunc(i.addresses, func(a address) bool {
		return a.formed && a.prefix.Masked() == prefix
	})
	if at < 0 {
		switch {
		case valid == 0:
		case len(i.addresses) >= maxAddresses:
			i.flooded = true
		default:
			a := address{prefix: i.stable(prefix, 0), formed: true}
			if valid < Infinite || preferred < Infinite {
				a.preferred, a.valid = now.Add(preferred), now.Add(valid)
			}
			i.detect(now, &a)
		}
		return
	}
	a := &i.addresses[at]
	if a.valid == clock.Never {
		a.valid = now.Add(Infinite)
	}
	switch left := a.valid.Sub(now); {
	case valid > twoHours || valid > left:
		a.valid = now.Add(valid)
	case left > twoHours:
		a.valid = now.Add(twoHours)
	}
	a.preferred = now.Add(preferred)
	switch {
	case a.state == Preferred && preferred == 0:
		i.deprecate(a)
	case a.state == Deprecated && preferred == 0:
		a.preferred = clock.Never // the lifetime is over and must not expire again
	case a.state == Deprecated && preferred > 0:
		a.state = Preferred
		i.addChange(Change{Kind: AddressPreferred, Prefix: a.prefix})
	}
}

// stable returns the address of this interface in a prefix.
func (i *Interface) stable(prefix netip.Prefix, duplicate uint8) netip.Prefix {
	return stable(prefix, i.cfg.Name, duplicate, i.cfg.Secret)
}

// StableLinkLocal returns the link-local address that an Interface with this name and secret forms.
func StableLinkLocal(name string, secret []byte) netip.Prefix {
	return stable(linkLocal, name, 0, secret)
}

// stable returns the address with a stable, opaque interface identifier in a prefix (RFC 7217 §5).
// With a probability of 2^-31 the identifier is a reserved one (RFC 5453), which is not checked.
func stable(prefix netip.Prefix, name string, duplicate uint8, secret []byte) netip.Prefix {
	base := prefix.Masked().Addr().As16()
	h := sha256.New()
	for _, part := range [][]byte{base[:8], []byte(name), {duplicate}, secret} {
		h.Write([]byte{byte(len(part))})
		h.Write(part)
	}
	copy(base[8:], h.Sum(nil))
	return netip.PrefixFrom(netip.AddrFrom16(base), prefix.Bits())
}
