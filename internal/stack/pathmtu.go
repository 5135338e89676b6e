package stack

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// pathMTUs are the path MTUs of IPv6 destinations that routers have reported (RFC 8201 §5.2), for
// packets that the node fragments. TCP and connected UDP sockets keep their own.
type pathMTUs map[netip.Addr]pathMTU

type pathMTU struct {
	mtu   int
	until clock.Time
}

const (
	maxPathMTUs = 256
	// pathMTULife is how long a path MTU is used before a larger one is tried (RFC 8201 §4).
	pathMTULife = 10 * time.Minute
)

// learn records the MTU that a packet too big message reports. A larger MTU than the known one may
// be old, so learn ignores it (RFC 8201 §4).
func (ps *pathMTUs) learn(now clock.Time, dst netip.Addr, mtu int) {
	if *ps == nil {
		*ps = pathMTUs{}
	}
	if ps.get(now, dst, mtu) < mtu {
		return
	}
	if _, known := (*ps)[dst]; !known && len(*ps) >= maxPathMTUs {
		ps.expire(now)
	}
	(*ps)[dst] = pathMTU{max(mtu, ip.MinMTU6), now.Add(pathMTULife)}
}

// expire removes old entries. If there are none, it removes the entry that expires first.
func (ps *pathMTUs) expire(now clock.Time) {
	var soonest netip.Addr
	for dst, p := range *ps {
		if p.until.Due(now) {
			delete(*ps, dst)
		} else if s := (*ps)[soonest]; !soonest.IsValid() || p.until < s.until ||
			p.until == s.until && dst.Less(soonest) {
			soonest = dst
		}
	}
	if len(*ps) >= maxPathMTUs {
		delete(*ps, soonest)
	}
}

// get returns the path MTU to dst, or the value of otherwise if no router reported one.
func (ps *pathMTUs) get(now clock.Time, dst netip.Addr, otherwise int) int {
	p, ok := (*ps)[dst]
	if !ok || p.until.Due(now) {
		return otherwise
	}
	return p.mtu
}

// label returns the flow label of the node's packets between two addresses and ports (RFC 6437 §3).
func (tx *sender) label(src, dst netip.Addr, from, to uint16, protocol uint8) uint32 {
	return tx.labels.Of(netip.AddrPortFrom(src, from), netip.AddrPortFrom(dst, to), protocol)
}
