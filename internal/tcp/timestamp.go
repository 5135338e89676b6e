package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// stamps is a connection's side of the Timestamps option (RFC 7323 §3), if hsStamps is set.
type stamps struct {
	// offset is added to the clock, so that stamps do not reveal the host's uptime or the stamps of
	// other connections (RFC 7323 §7.1). It depends on the tuple alone, so that stamps increase
	// from one connection with the same tuple to the next (RFC 6191 §2).
	offset   uint32
	recent   uint32     // TS.Recent, what is echoed
	recentAt clock.Time // when it arrived
	lastAck  uint64     // Last.ACK.sent (§4.3)
}

const (
	// stampLife is how long TS.Recent is valid: 24 days (RFC 7323 §5.5), less than the fastest
	// allowed clock takes to wrap half way.
	stampLife = 24 * 24 * time.Hour
	// stampBytes is the size of the option in each segment, with its two NOPs.
	stampBytes = 12
)

// stampOffset returns the offset of a tuple's stamps.
func stampOffset(secret *[16]byte, t *Tuple) uint32 { return uint32(keyed(secret, 't', t)) }

func (s *stamps) at(when clock.Time) uint32 { return recovery.Tick(when) + s.offset }

// old reports whether a stamp is older than TS.Recent: PAWS, RFC 7323 §5.3 R1.
func (s *stamps) old(now clock.Time, val uint32) bool {
	return after(s.recent, val) && now.Sub(s.recentAt) <= stampLife
}

// put adds the option to a segment.
func (s *stamps) put(now clock.Time, o *Options) {
	o.HasTimestamps, o.TSVal, o.TSEcr = true, s.at(now), s.recent
}

// remember keeps the stamp to echo, RFC 7323 §4.3 (2): that of a segment at or before the last
// acknowledgment. So a delayed acknowledgment echoes its first segment, and a gap does not count as
// delay of the path.
func (s *stamps) remember(now clock.Time, g *Segment, seq uint64) {
	if g.Options.HasTimestamps && seq <= s.lastAck && !s.old(now, g.Options.TSVal) {
		s.recent, s.recentAt = g.Options.TSVal, now
	}
}
