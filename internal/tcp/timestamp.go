package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// stamps is a connection's side of the Timestamps option (RFC 7323 §3). It
// means nothing without flagStamps.
type stamps struct {
	// offset is added to the clock: no stranger learns from one connection how long the host has
	// been up, nor what another's stamps are (RFC 7323 §7.1). It is the tuple's, so that the
	// stamps of its incarnations go on rising (RFC 6191 §2).
	offset   uint32
	recent   uint32     // TS.Recent, what is echoed
	recentAt clock.Time // when it arrived
	lastAck  uint64     // Last.ACK.sent (§4.3)
}

const (
	// stampLife is how long TS.Recent is believed: RFC 7323 §5.5, 24 days, before the fastest
	// clock allowed has gone halfway round.
	stampLife = 24 * 24 * time.Hour
	// stampBytes is what the option costs each segment, with its two NOPs.
	stampBytes = 12
)

// stampOffset returns the offset of a tuple's stamps.
func stampOffset(secret *[16]byte, t Tuple) uint32 { return uint32(keyed(secret, 't', t)) }

// at returns the stamp of a segment sent then.
func (s *stamps) at(when clock.Time) uint32 { return recovery.Tick(when) + s.offset }

// old reports whether a stamp is older than TS.Recent: PAWS, RFC 7323 §5.3 R1.
func (s *stamps) old(now clock.Time, val uint32) bool {
	return after(s.recent, val) && now.Sub(s.recentAt) <= stampLife
}

// put adds the option to what leaves now.
func (s *stamps) put(now clock.Time, o *Options) {
	o.HasTimestamps, o.TSVal, o.TSEcr = true, s.at(now), s.recent
}
