package tcp

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Sockopts are the options of a connection, or what a listener's connections begin with, to which
// a zero field leaves the host's default.
type Sockopts struct {
	// NoDelay turns Nagle's algorithm off (RFC 9293 §3.7.4).
	NoDelay bool
	// Cork holds back segments that are not full, for 200 ms at the most.
	Cork bool
	// MaxSeg bounds the payload of a segment, 48 to 65495 bytes, and if it is set before the
	// handshake, of those that the peer is asked for; zero: no bound.
	MaxSeg int
	// UserTimeout is how long data may stay unacknowledged, or wait for the peer's window,
	// before the connection is given up with ErrUserTimeout (RFC 9293 §3.8.3). It overrides the
	// host's number of retries and what the peer has proposed.
	UserTimeout time.Duration
	// TellTimeout sends UserTimeout to the peer: on the SYN, and whenever it changes (RFC 5482 §3).
	TellTimeout bool
	// Keepalive has a silent peer asked (RFC 9293 §3.8.4).
	Keepalive Keepalive
	// RecvBuffer and SendBuffer are the buffers in bytes; set, they do not tune themselves.
	RecvBuffer, SendBuffer int
	// TOS is the traffic class of RFC 2474 §3: six bits of DSCP; the two of ECN are the stack's.
	TOS uint8
	// TTL is the time to live of what is sent; zero: 64 (RFC 9293 §3.9.2).
	TTL uint8
	// FileDigest says in the SYN that a file follows with its digest, or accepts that: see
	// docs/decisions/0001-file-digest.md. Of an established connection: both ends have.
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

// Sockopts returns the options in force. Buffers are zero: to set them to that leaves them alone.
func (c *Conn) Sockopts() Sockopts {
	d := &c.snd
	o := Sockopts{
		NoDelay: d.nagle.off, Cork: d.nagle.cork, MaxSeg: int(d.path.maxSeg),
		TellTimeout: d.wait.tell, TOS: c.tos, TTL: c.ttl, FileDigest: c.hs.has(flagFileDigest),
	}
	if d.wait.chosen {
		o.UserTimeout = d.wait.limit
	}
	if c.keep != nil {
		o.Keepalive = c.keep.Keepalive
	}
	return o
}

// SetSockopts sets the options, all or none. A window that was offered is not taken back (RFC 9293
// §3.8.6): after a smaller RecvBuffer the offer shrinks as data arrives.
func (c *Conn) SetSockopts(now clock.Time, o Sockopts) error {
	if err := o.validate(); err != nil {
		return err
	}
	c.apply(now, &o)
	if o.RecvBuffer != 0 {
		c.Consumed(now)
	}
	c.touch()
	return nil
}

// apply sets what differs from the options in force.
func (c *Conn) apply(now clock.Time, o *Sockopts) {
	is, d := c.Sockopts(), &c.snd
	d.nagle.off = o.NoDelay
	if o.Cork != is.Cork {
		d.nagle.cork, d.nagle.corkOut, d.corkEnds = o.Cork, false, clock.Never
	}
	if o.MaxSeg != is.MaxSeg {
		d.path.maxSeg = uint16(o.MaxSeg)
		d.refit()
	}
	if n := o.RecvBuffer; n != 0 {
		c.rcv.setBuffer(min(max(n, MinBuffer), MaxBuffer))
	}
	if n := o.SendBuffer; n != 0 {
		d.txMax = min(max(n, MinBuffer), MaxBuffer)
		d.tx.Resize(d.txMax)
		c.raise(Writable)
	}
	if o.TellTimeout != is.TellTimeout {
		d.wait.tell = o.TellTimeout
		d.wait.due = d.wait.tell && d.wait.limit != 0
	}
	if o.UserTimeout != is.UserTimeout {
		d.wait.set(o.UserTimeout)
		d.wait.watch(now, &d.userTimer)
	}
	if k := o.Keepalive; k != is.Keepalive {
		c.keep, c.timers[timerKeepalive] = nil, clock.Never
		if k.Idle > 0 {
			c.keep = &keepalive{Keepalive: k.withDefaults(), since: now}
			c.timers[timerKeepalive] = now.Later(k.Idle)
		}
	}
	c.tos, c.ttl = o.TOS&^3, o.TTL // the two bits of ECN are left alone (RFC 3168 §5)
	if o.FileDigest {
		c.hs.flags |= flagFileDigest
	}
}

// SetCongestion changes the congestion control algorithm. The new one starts
// from the window that the old one had reached.
func (c *Conn) SetCongestion(name string) error {
	if err := c.snd.rec.SetAlgorithm(name, c.congestionConfig()); err != nil {
		return err
	}
	c.touch()
	return nil
}
