package tcp

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Sockopts are the options that a listener's connections begin with. A zero
// field leaves the host's default.
type Sockopts struct {
	// NoDelay turns Nagle's algorithm off (RFC 9293 §3.7.4).
	NoDelay bool
	// Cork holds back segments that are not full, for 200 ms at the most.
	Cork bool
	// MaxSeg bounds the payload of a segment in both directions: 48 to 65495 bytes.
	MaxSeg int
	// UserTimeout is how long data may stay unacknowledged, or wait for the peer's window,
	// before the connection is given up (RFC 9293 §3.8.3).
	UserTimeout time.Duration
	// TellTimeout sends UserTimeout to the peer (RFC 5482).
	TellTimeout bool
	// Keepalive has a silent peer asked (RFC 9293 §3.8.4).
	Keepalive Keepalive
	// RecvBuffer and SendBuffer are the buffers in bytes; set, they do not tune themselves.
	RecvBuffer, SendBuffer int
	// TOS is the traffic class of RFC 2474 §3: six bits of DSCP; the two of ECN are the stack's.
	TOS uint8
	// TTL is the time to live of what is sent; zero: 64 (RFC 9293 §3.9.2).
	TTL uint8
	// FileDigest accepts the peer's offer of a file's digest: docs/decisions/0001-file-digest.md.
	FileDigest bool
}

// SetSockopts sets what connections accepted from now on begin with.
func (l *Listener) SetSockopts(o Sockopts) error {
	if err := o.validate(); err != nil {
		return err
	}
	l.options = o
	return nil
}

// Sockopts returns what SetSockopts has set.
func (l *Listener) Sockopts() Sockopts { return l.options }

func (o *Sockopts) validate() error {
	switch {
	case o.MaxSeg != 0 && (o.MaxSeg < MinMSS || o.MaxSeg > maxMSS):
		return fmt.Errorf("tcp: segments of %d bytes, want %d to %d: %w",
			o.MaxSeg, MinMSS, maxMSS, ErrOption)
	case o.UserTimeout < 0, o.Keepalive.Idle < 0, o.Keepalive.Interval < 0:
		return fmt.Errorf("tcp: a negative time: %w", ErrOption)
	case o.RecvBuffer < 0, o.SendBuffer < 0, o.Keepalive.Count < 0:
		return fmt.Errorf("tcp: a negative number: %w", ErrOption)
	}
	return nil
}

// SetSockopts sets every option that is not zero.
func (c *Conn) SetSockopts(now clock.Time, o Sockopts) error {
	if err := o.validate(); err != nil {
		return err
	}
	if o.NoDelay {
		c.snd.nagle.off = true
	}
	if o.Cork {
		c.snd.nagle.cork = true
	}
	if o.MaxSeg != 0 {
		c.snd.path.maxSeg = uint16(o.MaxSeg)
		c.snd.refit()
	}
	if o.RecvBuffer != 0 {
		c.SetReadBuffer(now, o.RecvBuffer)
	}
	if o.SendBuffer != 0 {
		c.SetWriteBuffer(o.SendBuffer)
	}
	if o.TellTimeout {
		c.TellUserTimeout(true)
	}
	if o.UserTimeout != 0 {
		c.snd.wait.set(o.UserTimeout)
	}
	if o.Keepalive.Idle != 0 {
		c.SetKeepalive(now, o.Keepalive)
	}
	if o.FileDigest {
		c.OfferFileDigest()
	}
	c.SetTOS(o.TOS)
	c.ttl = o.TTL
	return nil
}

// OfferFileDigest says in the SYN that a file follows with its digest, which is done if the peer's
// SYN says so too.
func (c *Conn) OfferFileDigest() { c.hs.flags |= flagFileDigest }

// FileDigest reports whether both ends of an established connection have offered a file's digest.
func (c *Conn) FileDigest() bool { return c.hs.has(flagFileDigest) }

// SetNoDelay turns Nagle's algorithm off or on (RFC 9293 §3.7.4).
func (c *Conn) SetNoDelay(off bool) {
	c.snd.nagle.off = off
	c.touch()
}

// SetCork holds back segments that are not full, or lets them go.
func (c *Conn) SetCork(on bool) {
	c.snd.nagle.cork, c.snd.nagle.corkOut = on, false
	if !on {
		c.snd.corkEnds = clock.Never
	}
	c.touch()
}

// SetMaxSeg bounds the payload of the segments sent from now on, and, before
// the handshake, of those that the peer is asked for. Zero removes the bound.
func (c *Conn) SetMaxSeg(n int) error {
	if o := (Sockopts{MaxSeg: n}); o.validate() != nil {
		return o.validate()
	}
	c.snd.path.maxSeg = uint16(n)
	c.snd.refit()
	return nil
}

// SetTOS sets the traffic class of what is sent from now on. The two bits of
// ECN are left alone (RFC 3168 §5).
func (c *Conn) SetTOS(tos uint8) { c.tos = tos &^ 3 }

// SetTTL sets the time to live of what is sent from now on; zero: the default.
func (c *Conn) SetTTL(ttl uint8) { c.ttl = ttl }

// SetCongestion changes the congestion control algorithm. The new one starts
// from the window that the old one had reached.
func (c *Conn) SetCongestion(name string) error {
	if err := c.snd.rec.SetAlgorithm(name, c.congestionConfig()); err != nil {
		return err
	}
	c.touch()
	return nil
}

// SetReadBuffer sets the receive buffer, which then does not tune itself. A window that was offered
// is not taken back (RFC 9293 §3.8.6): after a smaller n the offer shrinks as data arrives.
func (c *Conn) SetReadBuffer(now clock.Time, n int) {
	n = min(max(n, MinBuffer), MaxBuffer)
	c.rcv.tune.size, c.rcv.tune.max = n, n
	c.rcv.rx.SetLimit(n)
	c.Consumed(now)
}

// SetWriteBuffer sets the send buffer, which then does not tune itself.
func (c *Conn) SetWriteBuffer(n int) {
	n = min(max(n, MinBuffer), MaxBuffer)
	c.snd.txMax = n
	c.snd.tx.Resize(n)
	c.raise(Writable)
	c.touch()
}

// SetUserTimeout bounds how long what was written may stay unacknowledged, or
// wait for a window that is shut; then the connection ends with ErrUserTimeout.
// It overrides the host's number of retries. Zero: the host's Patience again.
func (c *Conn) SetUserTimeout(now clock.Time, d time.Duration) error {
	if o := (Sockopts{UserTimeout: d}); o.validate() != nil {
		return o.validate()
	}
	c.snd.wait.set(d)
	c.snd.wait.watch(now, &c.snd.userTimer)
	c.touch()
	return nil
}

// TellUserTimeout has the peer told of the user timeout (RFC 5482 §3): on the
// SYN, and again whenever it changes.
func (c *Conn) TellUserTimeout(on bool) {
	c.snd.wait.tell = on
	c.snd.wait.due = on && c.snd.wait.limit != 0
	c.touch()
}

// UserTimeout returns the limit in force, zero when there is none.
func (c *Conn) UserTimeout() time.Duration { return c.snd.wait.limit }

// SetKeepalive has a silent peer asked, or no more.
func (c *Conn) SetKeepalive(now clock.Time, k Keepalive) {
	c.keep, c.timers[timerKeepalive] = nil, clock.Never
	if k.Idle > 0 {
		c.keep = &keepalive{Keepalive: k.withDefaults(), since: now}
		c.timers[timerKeepalive] = now.Later(c.keep.Idle)
	}
	c.touch()
}
