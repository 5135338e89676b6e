package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// stamps is the state of a connection's Timestamps option (RFC 7323 §3), if hsStamps is set.
type stamps struct {
	// offset is added to the clock, so that timestamps do not reveal the host's uptime or the
	// timestamps of other connections (RFC 7323 §7.1). It depends on the tuple alone, so that
	// timestamps increase from one connection with the same tuple to the next (RFC 6191 §2).
	offset   uint32
	recent   uint32     // TS.Recent, the timestamp to echo
	recentAt clock.Time // when recent arrived
	lastAck  uint64     // Last.ACK.sent (§4.3)
}

const (
	// stampLife is how long TS.Recent is valid: 24 days (RFC 7323 §5.5). The fastest allowed clock
	// takes longer than that to wrap half way.
	stampLife = 24 * 24 * time.Hour
	// stampBytes is the size of the option in each segment, with its two NOPs.
	stampBytes = 12
)

func stampOffset(secret *[16]byte, t *Tuple) uint32 { return uint32(keyed(secret, 't', t)) }

func (s *stamps) at(when clock.Time) uint32 { return recovery.Tick(when) + s.offset }

func (s *stamps) put(now clock.Time, o *Options) {
	o.HasTimestamps, o.TSVal, o.TSEcr = true, s.at(now), s.recent
}
