package stack

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// readOptions looks through the options of a packet that goes on, here or to others;
// false: it does not, because of them. Nobody may say which way a packet takes: source
// routes are refused, as RFC 7126 §4.3.5 and §4.4.5 advise, and RFC 1812 §5.3.13.4 is not
// followed. Their sender is told. Security options, router alerts and what is unknown
// are left alone. That RFC 7126 §4.5.5 and §4.7.5 would have recorded routes and times
// dropped, too, is for networks that somebody pays for: here they are to be seen.
func (s *Stack) readOptions(now clock.Time, i int, h *ip.Header, b []byte) bool {
	o, pointer, ok := ip.ParseOptions(h.Options)
	switch {
	case !ok:
		s.dropOne(now, i, Inbound, ip.DropOption, b)
		if s.mayAnswer(i, h) {
			s.report(now, icmp.TypeParameterProblem, 0, icmp.PointerRest(pointer), b)
		}
		return false
	case o.SourceRoute != 0:
		s.dropOne(now, i, Inbound, ip.DropSourceRoute, b)
		if s.mayAnswer(i, h) {
			s.reportError(now, icmp.TypeUnreachable, icmp.CodeSourceRoute, b)
		}
		return false
	}
	return true
}

// mayAnswer reports whether a packet is any of the node's business: a host is silent
// about what is for others (RFC 1122 §3.2.1.3).
func (s *Stack) mayAnswer(i int, h *ip.Header) bool {
	return s.cfg.Forwarding || s.isOurs(i, h.Dst)
}

// stamp enters the node into the record route and the timestamp of a packet that goes on
// from the given address (RFC 1812 §5.3.13.5, §5.3.13.6).
func (s *Stack) stamp(now clock.Time, h *ip.Header, b []byte, self ip.Addr) {
	if h.Options != nil {
		o, _, _ := ip.ParseOptions(h.Options) // readOptions has found them right
		o.Stamp(b, self, s.millis(now), s.isHost)
	}
}

// millis is the time as timestamps have it: milliseconds since midnight UT (RFC 791 §3.1,
// RFC 792).
func (s *Stack) millis(now clock.Time) uint32 {
	const day = 24 * time.Hour
	return uint32((s.cfg.TimeOfDay + time.Duration(now)) % day / time.Millisecond)
}
