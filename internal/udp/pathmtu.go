package udp

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// pathMTU is the smallest MTU that routers on the path to a socket's peer have reported lately.
type pathMTU struct {
	mtu int
	at  clock.Time
}

// pathMTUAge is the lifetime of a report. After ten minutes the path may have a larger MTU (RFC
// 1191 §6.3).
const pathMTUAge = 10 * time.Minute

// minMTU6 is the smallest MTU of a link with IPv6 (RFC 8200 §5).
const minMTU6 = 1280

// TooBig processes an ICMP error from a router that could not forward a datagram of size bytes,
// including the IP header, because the next link has this MTU. TooBig ignores an MTU that is not
// smaller than the datagram, or that is below the minimum of IPv6 (RFC 8201 §4).
func (h *Host) TooBig(now clock.Time, local, remote netip.AddrPort, size, mtu int) {
	if size <= mtu || remote.Addr().Is6() && mtu < minMTU6 {
		return
	}
	if s := h.sender(local, remote); s != nil {
		if s.PathMTU(now) == 0 || mtu < s.path.mtu {
			s.path = pathMTU{mtu: mtu, at: now}
		}
		s.fail(ErrTooBig)
	}
}

// PathMTU returns the path MTU to the socket's peer as reported by routers, in bytes with the IP
// header; 0: unknown.
func (s *Socket) PathMTU(now clock.Time) int {
	if s.path.mtu == 0 || s.path.at.Add(pathMTUAge) <= now {
		return 0
	}
	return s.path.mtu
}
