package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Knobs are what an operator may change while a host runs. They are for the
// connections opened afterwards, but for the bounds of the time-out, which all
// connections obey.
type Knobs struct {
	// Congestion names the algorithm; zero: "cubic".
	Congestion string
	// Recovery names the loss recovery of senders: "gbn", "newreno", "sack" or "rack"; zero:
	// "rack" (RFC 8985). The first two do not let the peer send selective acknowledgments.
	Recovery string
	// InitialWindow is the first congestion window in segments; zero: 10 (RFC 6928).
	InitialWindow int
	// FixedWindow is the window of the algorithm "fixed", in bytes; zero: the initial window.
	FixedWindow int
	// RTOMin and RTOMax bound the retransmission time-out; zero: 200 ms, 120 s.
	RTOMin, RTOMax time.Duration
	// RTOInitial is the time-out before the first sample; zero: 1 s (RFC 6298 §2.1).
	RTOInitial time.Duration
	// DelayedAck is how long an acknowledgment may wait for company; zero: a fifth of RTOMin,
	// at most 40 ms, so that a peer configured alike never mistakes the delay for a loss.
	DelayedAck time.Duration
	// MTUProbing is how a path's MTU is found where routers do not report it (RFC 4821): "off",
	// "blackhole" when nothing else explains that full segments are lost, or "on" from the start;
	// zero: "blackhole".
	MTUProbing string
	// NoDelay turns Nagle's algorithm off for new connections.
	NoDelay bool
	// Pacing spreads the window of new connections over the round trip. What paces by its own
	// nature (bbr) needs no asking.
	Pacing bool
	// OptionsOff sends no option at all, and offers none.
	OptionsOff bool
	// NoResets sends no segment with RST: a closed port answers with silence, and a connection that
	// is aborted ends without a word.
	NoResets bool
	// NoTimestamps, NoSACK and NoWindowScale neither offer nor accept the one option.
	NoTimestamps, NoSACK, NoWindowScale bool
	// ECN says whether to use explicit congestion notification; zero: when the peer asks.
	ECN ECNMode
	// SynCookies says when SYNs are answered without remembering them; zero: when a listener's
	// SYN queue is full.
	SynCookies CookieMode
}

// Knobs returns the knobs as they are.
func (h *Host) Knobs() Knobs { return h.cfg.Knobs }

// SetKnobs turns the knobs, all or none. A zero means the default.
func (h *Host) SetKnobs(k Knobs) error {
	cfg := h.cfg
	cfg.Knobs = k
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return err
	}
	h.cfg, h.recoveries.lossOptions = cfg, cfg.lossOptions()
	return nil
}

// Algorithms returns the names that Knobs.Congestion takes.
func Algorithms() []string { return congestion.Names() }

// TimeWait returns how long a connection stays in TIME-WAIT (RFC 9293 §3.4.2).
func (h *Host) TimeWait() time.Duration { return 2 * max(h.cfg.MSL, 0) }
