package tcp

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Path is what routing knows about the way to a peer.
type Path struct {
	// Outlet is the index of the interface that packets leave by, -1 when there is no route.
	Outlet int
	// MTU is the largest IP packet that the outlet carries.
	MTU int
	// Local is the address that packets to the peer come from.
	Local [4]byte
	// DefaultMSS says that a peer without an MSS option takes 536 bytes (RFC 9293 §3.7.1), and
	// understands the option itself. Otherwise it takes what the outlet carries.
	DefaultMSS bool
	// NotHost says, where there is no route, that the address is no single host's.
	NotHost bool
}

// Config is what a Host is made from. Every zero field but Route has a meaning.
type Config struct {
	Knobs
	Patience
	Limits

	// Route finds the way to a peer. It must be set.
	Route func(remote [4]byte) Path
	// FinWait2 is how long a connection that the user closed waits for the peer's FIN; zero: 60 s.
	FinWait2 time.Duration
	// MSL is the maximum segment lifetime, half of TIME-WAIT; zero: 30 s. Negative: no TIME-WAIT.
	MSL time.Duration
	// RecvBuffer and SendBuffer are each connection's buffers in bytes, to begin with; zero:
	// 256 KiB.
	RecvBuffer, SendBuffer int
	// RecvBufferMax and SendBufferMax are what they grow to by themselves; zero: no more than a
	// size that was given, else 6 MiB and 4 MiB.
	RecvBufferMax, SendBufferMax int
	// RecvBufferNear is what the receive buffer grows to by itself while a round trip is shorter
	// than a millisecond; zero: RecvBufferMax. There a round trip is what waits in queues, and
	// what waits longer than the processor's cache is large is fetched twice.
	RecvBufferNear int
	// TrainSegments is the largest train in segments; zero: 44.
	TrainSegments int
	// Secret keys the initial sequence numbers and the choice of ports (RFC 9293 §3.4.1, RFC
	// 6056). The driver fills it with random bytes once a boot; zero is predictable.
	Secret [16]byte
	// Algorithms are congestion controllers of the host's own. Knobs.Congestion and
	// Conn.SetCongestion take their names beside, and before, those of package congestion.
	Algorithms map[string]congestion.Make
	// Sequence replaces the initial sequence number of RFC 9293 §3.4.1, for experiments that
	// must start at a known place; nil: the RFC's.
	Sequence func(Tuple) uint32
}

// Patience is how often an unanswered segment is sent again before its
// connection is given up.
type Patience struct {
	// SynRetries is how often a SYN is retransmitted; zero: 6, or up to 30 until that has taken
	// 127 s, which is what 6 take with the usual RTOs.
	SynRetries int
	// SynAckRetries is the same for a SYN-ACK, whose address may be a victim's; zero: 5, or
	// SynRetries if that is less.
	SynAckRetries int
	// SynTimeout is the wait after each SYN and SYN-ACK; zero: RTOInitial, doubled each time.
	SynTimeout time.Duration
	// DataRetries is how often data is sent again, without an answer, before the connection is
	// given up; zero: 15 (RFC 9293 §3.8.3, R2).
	DataRetries int
	// FinRetries is the same for a FIN with all data acknowledged; zero: 8.
	FinRetries int
	// FinTimeout is the wait after each FIN; zero: the retransmission time-out.
	FinTimeout time.Duration
}

// Limits bound what others can make a host keep or send.
type Limits struct {
	// MaxTimeWait bounds the connections kept in TIME-WAIT; beyond it the oldest goes; zero: 65536.
	MaxTimeWait int
	// MaxReceiveRanges bounds the gaps in what arrived out of order; zero: 1024.
	MaxReceiveRanges int
	// EarlyBytes bounds the memory of all connections for what arrived out of order; zero: 256
	// MiB.
	EarlyBytes int
	// MaxConns bounds the connections, those in TIME-WAIT apart; zero: 1<<20.
	MaxConns int
	// SynBacklog bounds each listener's half-open connections (RFC 4987 §3.1); zero: 1024.
	// Knobs.SynCookies says what becomes of SYNs beyond.
	SynBacklog int
	// ChallengeAcks is the budget of challenge ACKs a second for the whole host, on the average
	// (RFC 5961 §7); zero: 1000. A connection has 10 in 5 s.
	ChallengeAcks int
}

func orDefault[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

func (c Config) withDefaults() Config {
	orDefault(&c.RTOMin, 200*time.Millisecond)
	orDefault(&c.RTOMax, max(120*time.Second, c.RTOMin))
	orDefault(&c.RTOInitial, min(max(time.Second, c.RTOMin), c.RTOMax))
	orDefault(&c.SynRetries, c.synRetries())
	orDefault(&c.SynAckRetries, min(c.SynRetries, 5))
	orDefault(&c.DataRetries, 15)
	orDefault(&c.SynBacklog, 1024)
	orDefault(&c.EarlyBytes, 256<<20)
	orDefault(&c.FinRetries, 8)
	orDefault(&c.FinWait2, 60*time.Second)
	orDefault(&c.MSL, 30*time.Second)
	orDefault(&c.MaxTimeWait, 65536)
	bufferDefaults(&c.RecvBuffer, &c.RecvBufferMax, 6<<20)
	bufferDefaults(&c.SendBuffer, &c.SendBufferMax, 4<<20)
	orDefault(&c.MaxReceiveRanges, 1024)
	orDefault(&c.InitialWindow, 10)
	orDefault(&c.DelayedAck, min(c.RTOMin/5, 40*time.Millisecond))
	orDefault(&c.TrainSegments, maxTrainSegments)
	orDefault(&c.ChallengeAcks, 1000)
	orDefault(&c.MaxConns, 1<<20)
	if c.Congestion == "" {
		c.Congestion = "cubic"
	}
	if c.Recovery == "" {
		c.Recovery = rackTLP.name
	}
	if c.MTUProbing == "" {
		c.MTUProbing = MTUProbingBlackHole
	}
	return c
}

// lossOptions returns what loss detection and congestion control need of the configuration.
func (c *Config) lossOptions() lossOptions {
	return lossOptions{
		Congestion: c.Congestion, Algorithms: c.Algorithms, InitialWindow: c.InitialWindow,
		FixedWindow: c.FixedWindow, MaxWindow: c.SendBufferMax, Pacing: c.Pacing,
		RTOMin: c.RTOMin, RTOMax: c.RTOMax, RTOInitial: c.RTOInitial,
		FinTimeout: c.FinTimeout, AckDelay: c.DelayedAck,
	}
}

// synRetries returns how often a SYN is retransmitted by default. Hosts with a small RTOMax outlast
// a router's restart like others do.
func (c *Config) synRetries() int {
	const least, most, outage = 6, 30, 127 * time.Second
	rto, total := c.RTOInitial, time.Duration(0)
	for n := range most {
		if total += rto; n >= least && total >= outage {
			return n
		}
		rto = min(2*rto, c.RTOMax)
	}
	return most
}

// bufferDefaults completes a buffer's size and what it may grow to.
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
	if c.Route == nil {
		bad("no Route")
	}
	if c.RTOMin < 0 || c.RTOMax < c.RTOMin {
		bad("RTO bounds %v to %v", c.RTOMin, c.RTOMax)
	}
	if c.RTOInitial < 0 || c.SynTimeout < 0 || c.FinTimeout < 0 || c.FinWait2 < 0 ||
		c.DelayedAck < 0 {
		bad("a negative time-out")
	}
	if c.DelayedAck >= MaxDelayedAck {
		bad("acknowledgments delayed by %v: want less than %v", c.DelayedAck, MaxDelayedAck)
	}
	if c.SynBacklog < 0 || c.EarlyBytes < 0 {
		bad("a negative limit on what strangers send")
	}
	for _, n := range []int{c.SynRetries, c.SynAckRetries, c.DataRetries, c.FinRetries} {
		if n < 0 || n > MaxRetries {
			bad("%d retries: want 0 to %d", n, MaxRetries)
		}
	}
	if c.MaxTimeWait < 0 ||
		c.ChallengeAcks < 0 || c.MaxConns < 0 || c.MaxReceiveRanges < 0 {
		bad("a negative limit")
	}
	if c.RecvBuffer < MinBuffer || c.RecvBuffer > MaxBuffer ||
		c.SendBuffer < MinBuffer || c.SendBuffer > MaxBuffer ||
		c.RecvBufferMax < c.RecvBuffer || c.RecvBufferMax > MaxBuffer ||
		c.SendBufferMax < c.SendBuffer || c.SendBufferMax > MaxBuffer {
		bad("buffers of %d to %d and %d to %d bytes, want %d to %d", c.RecvBuffer,
			c.RecvBufferMax, c.SendBuffer, c.SendBufferMax, MinBuffer, MaxBuffer)
	}
	switch c.MTUProbing {
	case MTUProbingOff, MTUProbingBlackHole, MTUProbingOn:
	default:
		bad("MTU probing %q", c.MTUProbing)
	}
	if c.ECN >= numECNModes || c.SynCookies >= numCookieModes {
		bad("ECN mode %d or cookie mode %d", c.ECN, c.SynCookies)
	}
	if c.InitialWindow < 1 || c.InitialWindow > MaxInitialWindow {
		bad("an initial window of %d segments: want 1 to %d", c.InitialWindow, MaxInitialWindow)
	}
	if c.TrainSegments < 1 || c.TrainSegments > maxTrainSegments {
		bad("trains of %d segments: want 1 to %d", c.TrainSegments, maxTrainSegments)
	}
	if _, err := congestion.Find(c.Algorithms, c.Congestion); err != nil {
		errs = append(errs, err)
	}
	if _, err := findStrategy(c.Recovery); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return fmt.Errorf("tcp: config: %w", errors.Join(errs...))
	}
	return nil
}

const (
	// MaxInitialWindow is in segments: more than any window holds.
	MaxInitialWindow = 1 << 16
	// MaxRetries bounds how often a segment may be sent again.
	MaxRetries = 255
	// MaxDelayedAck is more than an acknowledgment may wait (RFC 9293 §3.8.6.3).
	MaxDelayedAck = 500 * time.Millisecond
	// MaxBuffer is the largest window that RFC 7323 §2.3 can express.
	MaxBuffer = 1 << 30
	// MinBuffer is the smallest.
	MinBuffer = 64
	// maxTrainSegments and maxTrainBytes keep a train within one system call and one IP length.
	maxTrainSegments = 44
	maxTrainBytes    = 64000
	// minMSS is the least that an MSS option is obeyed to: below it headers are most of the
	// traffic (CVE-2019-11479). Above maxMSS a datagram has no length.
	minMSS = 48
	maxMSS = 65535 - HeaderSize - ipHeaderSize
	// ipHeaderSize is the IPv4 header that a segment travels in.
	ipHeaderSize = 20
)
