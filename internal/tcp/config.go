package tcp

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// Path is the route to a peer.
type Path struct {
	// Outlet is the index of the interface that packets leave by, -1 when there is no route.
	Outlet int
	// MTU is the largest IP packet that the outlet carries.
	MTU int
	// Local is the address that packets to the peer come from.
	Local netip.Addr
	// With DefaultMSS, a peer that sends no MSS option gets segments of at most 536 bytes, or 1220
	// over IPv6 (RFC 9293 §3.7.1), and an MSS option on the SYN-ACK. Otherwise the host assumes
	// that the peer accepts the outlet's MTU.
	DefaultMSS bool
	// NotHost is set if there is no route because the address is not the address of a single host.
	NotHost bool
}

// Config configures a Host. The zero value of every field but Route is valid.
type Config struct {
	Knobs
	Buffers Buffers
	Retries Retries
	Limits  Limits

	// Route looks up the path to a peer. It must be set.
	Route func(remote netip.Addr) Path
	// FinWait2 is how long a connection that the user closed waits for the peer's FIN; zero: 60 s.
	FinWait2 time.Duration
	// MSL is the maximum segment lifetime, half of TIME-WAIT; zero: 30 s. Negative: no TIME-WAIT.
	MSL time.Duration
	// TrainSegments is the largest train in segments; zero: 44.
	TrainSegments int
	// Secret keys the initial sequence numbers (RFC 9293 §3.4.1), timestamps, cookies and choice of
	// ports (RFC 6056). The driver fills it with random bytes at boot; zero is predictable.
	Secret [16]byte
	// Algorithms are the host's own congestion controllers. Recovery.Congestion and
	// Sockopts.Congestion find their names before the names of package congestion.
	Algorithms map[string]congestion.Make
	// Sequence replaces the initial sequence numbers of RFC 9293 §3.4.1, for reproducible
	// experiments; nil: the sequence numbers of the RFC.
	Sequence func(Tuple) uint32
}

// Knobs are the settings that an operator may change while a host runs. Most apply to later
// connections only. The bounds of the RTO, DelayedAck, MTUProbing and NoResets apply to all.
type Knobs struct {
	Recovery Recovery
	// DelayedAck is how long an acknowledgment may be delayed; zero: a fifth of RTOMin, at most 40
	// ms. Then a peer with the same configuration never mistakes the delay for a loss.
	DelayedAck time.Duration
	// MTUProbing says when the host searches for a path's MTU itself (RFC 4821), because routers
	// may not report it. "off": never. "blackhole": when nothing else explains the loss of full
	// segments. "on": from the start. Zero: "blackhole".
	MTUProbing string
	// NoDelay turns Nagle's algorithm off for new connections.
	NoDelay bool
	// OptionsOff neither sends nor accepts TCP options.
	OptionsOff bool
	// NoResets sends no RST: a closed port does not answer, and an aborted connection does not
	// notify its peer.
	NoResets bool
	// NoTimestamps, NoSACK and NoWindowScale neither offer nor accept that one option.
	NoTimestamps, NoSACK, NoWindowScale bool
	// ECN says whether to use explicit congestion notification; zero: if the peer requests it.
	ECN ECNMode
	// SynCookies says when the host answers SYNs without storing them; zero: when a listener's SYN
	// queue is full.
	SynCookies CookieMode
}

// Recovery says how senders find losses and control congestion.
type Recovery = recovery.Config

// Buffers are the sizes of each connection's buffers in bytes.
type Buffers struct {
	// Recv and Send are the initial sizes; zero: 256 KiB.
	Recv, Send int
	// RecvMax and SendMax bound automatic tuning; zero: the configured size, or 6 MiB and 4 MiB if
	// that is zero too.
	RecvMax, SendMax int
	// RecvNear bounds automatic tuning of the receive buffer while the round trip is shorter than a
	// millisecond; zero: RecvMax. Such a round trip consists of queueing delay, and a buffer larger
	// than the processor's cache only makes reading slower.
	RecvNear int
}

// Retries bound how often a connection retransmits an unanswered segment.
type Retries struct {
	// Syn is the limit for a SYN; zero: 6, or up to 30 with a small RTOMax, so that the attempt
	// lasts 127 s as with the default RTOs.
	Syn int
	// SynAck is the limit for a SYN-ACK, which may go to the victim of a forged SYN; zero: 5, or
	// Syn if that is less.
	SynAck int
	// SynTimeout is the wait after each SYN and SYN-ACK; zero: RTOInitial, doubled each time.
	SynTimeout time.Duration
	// Data is the limit for data; zero: 15 (RFC 9293 §3.8.3, R2).
	Data int
	// Fin is the limit for a FIN after all data is acknowledged; zero: 8.
	Fin int
	// FinTimeout is the wait after each FIN; zero: the RTO.
	FinTimeout time.Duration
}

// Limits bound what peers can make a host store or send.
type Limits struct {
	// MaxTimeWait bounds the connections in TIME-WAIT. Beyond it the host removes the oldest. Zero:
	// 65536.
	MaxTimeWait int
	// MaxReceiveRanges bounds the gaps in each connection's out-of-order data; zero: 1024.
	MaxReceiveRanges int
	// EarlyBytes bounds the out-of-order data of all connections, in bytes; zero: 256 MiB.
	EarlyBytes int
	// MaxConns bounds the connections that are not in TIME-WAIT; zero: 1<<20.
	MaxConns int
	// SynBacklog bounds each listener's half-open connections (RFC 4987 §3.1); zero: 1024. Beyond
	// it Knobs.SynCookies decides.
	SynBacklog int
	// ChallengeAcks is the budget of challenge ACKs a second for the whole host, on average (RFC
	// 5961 §7); zero: 1000. A connection has 10 in 5 s.
	ChallengeAcks int
}

// complete fills in the defaults and validates the configuration.
func (c Config) complete() (Config, error) {
	c.Recovery.SetDefaults()
	c.SetTimes()
	c.Buffers.setDefaults()
	c.Retries.setDefaults(&c.Recovery)
	c.Limits.SynBacklog = cmp.Or(c.Limits.SynBacklog, 1024)
	c.Limits.EarlyBytes = cmp.Or(c.Limits.EarlyBytes, 256<<20)
	c.Limits.MaxTimeWait = cmp.Or(c.Limits.MaxTimeWait, 65536)
	c.Limits.MaxReceiveRanges = cmp.Or(c.Limits.MaxReceiveRanges, 1024)
	c.Limits.ChallengeAcks = cmp.Or(c.Limits.ChallengeAcks, 1000)
	c.Limits.MaxConns = cmp.Or(c.Limits.MaxConns, 1<<20)
	c.FinWait2 = cmp.Or(c.FinWait2, 60*time.Second)
	c.MSL = cmp.Or(c.MSL, 30*time.Second)
	c.MTUProbing = cmp.Or(c.MTUProbing, MTUProbingBlackHole)
	c.TrainSegments = cmp.Or(c.TrainSegments, maxTrainSegments)
	return c, c.validate()
}

// SetTimes derives RTOInitial and DelayedAck from RTOMin and RTOMax if they are zero.
func (k *Knobs) SetTimes() {
	r := &k.Recovery
	r.RTOInitial = cmp.Or(r.RTOInitial, min(max(time.Second, r.RTOMin), r.RTOMax))
	k.DelayedAck = cmp.Or(k.DelayedAck, min(r.RTOMin/5, 40*time.Millisecond))
}

func (b *Buffers) setDefaults() {
	bufferDefaults(&b.Recv, &b.RecvMax, 6<<20)
	bufferDefaults(&b.Send, &b.SendMax, 4<<20)
}

func (r *Retries) setDefaults(rec *Recovery) {
	r.Syn = cmp.Or(r.Syn, synRetries(rec))
	r.SynAck = cmp.Or(r.SynAck, min(r.Syn, 5))
	r.Data = cmp.Or(r.Data, 15)
	r.Fin = cmp.Or(r.Fin, 8)
}

func (c *Config) recoveryOptions() recovery.Options {
	return recovery.Options{
		Config: c.Recovery, Algorithms: c.Algorithms, MaxWindow: c.Buffers.SendMax,
		FinTimeout: c.Retries.FinTimeout, AckDelay: c.DelayedAck,
	}
}

// acceptsSACK reports whether the peer may send selective acknowledgments (RFC 2018 §2).
// Strategies without SACK count duplicate acknowledgments instead.
func (k *Knobs) acceptsSACK() bool {
	sack, err := recovery.UsesSACK(k.Recovery.Strategy)
	return err == nil && sack && !k.NoSACK
}

// synRetries returns the default limit for a SYN. Hosts with a small RTOMax retry more often, so
// that they too survive the restart of a router.
func synRetries(r *Recovery) int {
	const least, most, outage = 6, 30, 127 * time.Second
	rto, total := r.RTOInitial, time.Duration(0)
	for n := range most {
		if total += rto; n >= least && total >= outage {
			return n
		}
		rto = min(2*rto, r.RTOMax)
	}
	return most
}

// Algorithms returns the names that Recovery.Congestion accepts.
func Algorithms() []string { return congestion.Names() }

// Recoveries returns the names that Recovery.Strategy accepts.
func Recoveries() []string { return recovery.Names() }

func bufferDefaults(size, most *int, wide int) {
	switch {
	case *size == 0 && *most == 0:
		*size, *most = 256<<10, wide
	case *size == 0:
		*size = min(256<<10, *most)
	case *most == 0:
		*most = *size
	}
}

func (c *Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	within := func(what string, n, least, most int) {
		if n < least || n > most {
			bad("%s is %d: must be %d to %d", what, n, least, most)
		}
	}
	if c.Route == nil {
		bad("Route is missing")
	}
	rec, retries, limits := &c.Recovery, &c.Retries, &c.Limits
	nonNegative := func(what string, d time.Duration) {
		if d < 0 {
			bad("%s is %v: must not be negative", what, d)
		}
	}
	nonNegative("RTOMin", rec.RTOMin)
	nonNegative("RTOInitial", rec.RTOInitial)
	nonNegative("SynTimeout", retries.SynTimeout)
	nonNegative("FinTimeout", retries.FinTimeout)
	nonNegative("FinWait2", c.FinWait2)
	nonNegative("DelayedAck", c.DelayedAck)
	if rec.RTOMax < rec.RTOMin {
		bad("RTOMax is %v: must be at least RTOMin, %v", rec.RTOMax, rec.RTOMin)
	}
	if c.DelayedAck >= MaxDelayedAck {
		bad("DelayedAck is %v: must be less than %v", c.DelayedAck, MaxDelayedAck)
	}
	within("Retries.Syn", retries.Syn, 0, MaxRetries)
	within("Retries.SynAck", retries.SynAck, 0, MaxRetries)
	within("Retries.Data", retries.Data, 0, MaxRetries)
	within("Retries.Fin", retries.Fin, 0, MaxRetries)
	within("SynBacklog", limits.SynBacklog, 0, math.MaxInt)
	within("EarlyBytes", limits.EarlyBytes, 0, math.MaxInt)
	within("MaxTimeWait", limits.MaxTimeWait, 0, math.MaxInt)
	within("MaxReceiveRanges", limits.MaxReceiveRanges, 0, math.MaxInt)
	within("ChallengeAcks", limits.ChallengeAcks, 0, math.MaxInt)
	within("MaxConns", limits.MaxConns, 0, math.MaxInt)
	within("Buffers.Recv", c.Buffers.Recv, MinBuffer, MaxBuffer)
	within("Buffers.Send", c.Buffers.Send, MinBuffer, MaxBuffer)
	within("Buffers.RecvMax", c.Buffers.RecvMax, c.Buffers.Recv, MaxBuffer)
	within("Buffers.SendMax", c.Buffers.SendMax, c.Buffers.Send, MaxBuffer)
	within("InitialWindow", rec.InitialWindow, 1, MaxInitialWindow)
	within("TrainSegments", c.TrainSegments, 1, maxTrainSegments)
	within("ECN mode", int(c.ECN), 0, int(numECNModes)-1)
	within("SYN cookie mode", int(c.SynCookies), 0, int(numCookieModes)-1)
	switch c.MTUProbing {
	case MTUProbingOff, MTUProbingBlackHole, MTUProbingOn:
	default:
		bad("MTUProbing is %q: must be off, blackhole or on", c.MTUProbing)
	}
	_, badAlgorithm := congestion.Find(c.Algorithms, rec.Congestion)
	_, badStrategy := recovery.UsesSACK(rec.Strategy)
	if err := errors.Join(append(errs, badAlgorithm, badStrategy)...); err != nil {
		return fmt.Errorf("tcp: config: %w", err)
	}
	return nil
}

const (
	// MaxInitialWindow bounds the initial window, in segments.
	MaxInitialWindow = 1 << 16
	// MaxRetries bounds how often a segment may be retransmitted.
	MaxRetries = 255
	// MaxDelayedAck bounds the delay of an acknowledgment (RFC 9293 §3.8.6.3).
	MaxDelayedAck = 500 * time.Millisecond
	// MaxBuffer is the largest window that RFC 7323 §2.3 can express.
	MaxBuffer = 1 << 30
	// MinBuffer is the smallest buffer, in bytes.
	MinBuffer = 64
	// maxTrainSegments and maxTrainBytes limit a train to one system call and one IP length field.
	maxTrainSegments = 44
	maxTrainBytes    = 64000
	// MinMSS is the minimum MSS: with less, most of the traffic would be headers (CVE-2019-11479).
	// maxMSS is the largest payload that the length field of IPv4 allows.
	MinMSS = 48
	maxMSS = 65535 - HeaderSize - ipHeaderSize
	// The sizes of the IPv4 and IPv6 headers.
	ipHeaderSize, ip6HeaderSize = 20, 40
)
