package tcp

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Sockopts are the options of a connection, or the initial options of a listener's connections. In
// a listener's options, a zero field means the host's default.
type Sockopts struct {
	// NoDelay turns Nagle's algorithm off (RFC 9293 §3.7.4).
	NoDelay bool
	// Cork holds back short segments, for at most 200 ms.
	Cork bool
	// MaxSeg bounds the payload of a segment, 48 to 65495 bytes; zero: no bound. If it is set
	// before the handshake, it bounds the peer's segments too.
	MaxSeg int
	// UserTimeout is how long data may stay unacknowledged, or wait for the peer's window, before
	// the connection fails with ErrUserTimeout (RFC 9293 §3.8.3). It overrides Retries and the
	// peer's proposal.
	UserTimeout time.Duration
	// AdvertiseTimeout sends UserTimeout to the peer, on the SYN and after each change (RFC 5482
	// §3).
	AdvertiseTimeout bool
	// Keepalive probes a silent peer (RFC 9293 §3.8.4).
	Keepalive Keepalive
	// RecvBuffer and SendBuffer set the buffers in bytes and turn their automatic tuning off.
	RecvBuffer, SendBuffer int
	// TOS is the traffic class of RFC 2474 §3, six bits of DSCP. The stack sets the two ECN bits.
	TOS uint8
	// TTL is the time to live of the packets sent; zero: 64 (RFC 9293 §3.9.2).
	TTL uint8
	// Congestion names the new congestion control, which starts with the old one's window. An empty
	// name changes nothing.
	Congestion string
	// FileDigest offers in the SYN that a file with its digest follows, or accepts the peer's offer
	// (docs/decisions/0001-file-digest.md). On an established connection it says that both ends
	// have agreed.
	FileDigest bool
}

// SetSockopts sets the initial options of connections accepted from now on.
func (l *Listener) SetSockopts(o Sockopts) error {
	if err := o.validate(l.host); err != nil {
		return err
	}
	l.options = o
	return nil
}

func (o *Sockopts) validate(h *Host) error {
	switch {
	case o.MaxSeg != 0 && (o.MaxSeg < MinMSS || o.MaxSeg > maxMSS):
		return fmt.Errorf("tcp: MaxSeg %d: must be %d to %d: %w",
			o.MaxSeg, MinMSS, maxMSS, ErrOption)
	case o.UserTimeout < 0, o.Keepalive.Idle < 0, o.Keepalive.Interval < 0:
		return fmt.Errorf("tcp: user timeout %v, keepalive %v every %v: must not be negative: %w",
			o.UserTimeout, o.Keepalive.Idle, o.Keepalive.Interval, ErrOption)
	case o.RecvBuffer < 0, o.SendBuffer < 0, o.Keepalive.Count < 0:
		return fmt.Errorf("tcp: receive buffer %d, send buffer %d, keepalive count %d: must not "+
			"be negative: %w", o.RecvBuffer, o.SendBuffer, o.Keepalive.Count, ErrOption)
	case o.Congestion == "":
		return nil
	}
	_, err := congestion.Find(h.recoveries.Algorithms, o.Congestion)
	return err
}

func (o *Sockopts) apply(now clock.Time, c *Conn) {
	is, d := c.Sockopts(), &c.snd
	d.nagle.off = o.NoDelay
	if o.Cork != is.Cork {
		d.nagle.cork, d.nagle.corkExpired, d.corkEnds = o.Cork, false, clock.Never
	}
	if o.Congestion != "" {
		_ = d.rec.SetAlgorithm(o.Congestion, d.congestion(c.host.now)) // validate has found it
	}
	if o.MaxSeg != is.MaxSeg {
		d.path.maxSeg = uint16(o.MaxSeg)
		d.updateMSS()
	}
	if n := o.RecvBuffer; n != 0 {
		c.rcv.setBuffer(min(max(n, MinBuffer), MaxBuffer))
	}
	if n := o.SendBuffer; n != 0 {
		d.txMax = min(max(n, MinBuffer), MaxBuffer)
		d.tx.Resize(d.txMax)
		c.raise(Writable)
	}
	if o.AdvertiseTimeout != is.AdvertiseTimeout {
		d.wait.advertise = o.AdvertiseTimeout
		d.wait.due = d.wait.advertise && d.wait.limit != 0
	}
	if o.UserTimeout != is.UserTimeout {
		d.wait.set(o.UserTimeout)
		d.wait.watch(now)
	}
	if k := o.Keepalive; k != is.Keepalive {
		c.keep = nil
		if k.Idle > 0 {
			c.keep = &keepalive{Keepalive: k.withDefaults(), since: now, at: now.Later(k.Idle)}
		}
	}
	c.tos, c.ttl = o.TOS&^3, o.TTL // without the two bits of ECN (RFC 3168 §5)
	if o.FileDigest {
		c.hs.flags |= hsFileDigest
	}
}
