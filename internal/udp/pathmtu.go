package udp

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// pathMTU is what a router has reported about the way to a socket's peer.
type pathMTU struct {
	mtu int
	at  clock.Time
}

// pathMTUAge is how long a report is believed: RFC 1191 §6.3, after ten minutes the way
// may be a wider one.
const pathMTUAge = 10 * time.Minute

// TooBig is Report of a router that could not pass on a datagram of size bytes, header
// of IP included, because its next link takes mtu. A report that the datagram was no
// larger than that is none.
func (h *Host) TooBig(now clock.Time, local, remote netip.AddrPort, size, mtu int) {
	if size <= mtu {
		return
	}
	if s := h.sender(local, remote); s != nil {
		if s.PathMTU(now) == 0 || mtu < s.path.mtu {
			s.path = pathMTU{mtu: mtu, at: now}
		}
		s.fail(ErrTooBig)
	}
}

// PathMTU returns the longest packet, in bytes with IP's header, that the way to the
// socket's peer takes, as far as a router has said so; 0: none has.
func (s *Socket) PathMTU(now clock.Time) int {
	if s.path.mtu == 0 || s.path.at.Add(pathMTUAge) <= now {
		return 0
	}
	return s.path.mtu
}
