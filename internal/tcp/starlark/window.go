package starlark

import (
	"go.starlark.net/starlark"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// before is the window before a loss episode.
type before struct {
	open, valid    bool // open: the episode has not ended; valid: it can be undone
	cwnd, ssthresh quantity
}

// save saves the window at the first loss of an episode. After an ECN echo (RFC 3168) the old
// window must not be restored.
func (b *before) save(k congestion.Kind, s *state) {
	switch {
	case k == congestion.Echo:
		*b = before{}
	case !b.open:
		*b = before{open: true, valid: true, cwnd: s.cwnd, ssthresh: s.ssthresh}
	}
}

// end ends the episode. A spurious episode can be undone only once.
func (b *before) end(spurious bool) {
	b.open = false
	if spurious {
		b.valid = false
	}
}

// defaultExit ends an episode as the built-in loss-based algorithms do: it undoes a spurious
// reduction (RFC 4015 §3.1), and otherwise keeps the window below the bound of RFC 7661 §4.4.1. It
// does nothing for a script without ssthresh.
func (c *controller) defaultExit(e *congestion.Exit) {
	s, b := &c.state, &c.before
	if s.ssthresh.n == 0 {
		return
	}
	s.acked = starlark.MakeInt(0)
	if e.Spurious && b.valid {
		s.cwnd = larger(s.cwnd, b.cwnd)
		s.ssthresh = larger(s.ssthresh, b.ssthresh)
	}
	if e.Ceiling > 0 && !e.Spurious && s.cwnd.n > int64(e.Ceiling) {
		s.cwnd = bytesOf(e.Ceiling)
	}
}

func larger(a, b quantity) quantity {
	if b.n > a.n {
		return b
	}
	return a
}

// defaultRestart restarts after an idle period as the built-in algorithms do. It sets the window to
// the restart window of RFC 5681 §4.1. It sets ssthresh so that slow start restores most of the old
// window (RFC 7661 §4.4.3).
func (c *controller) defaultRestart(r *congestion.Restart) {
	s := &c.state
	cwnd := int(s.cwnd.n)
	if s.ssthresh.n == 0 || cwnd <= c.initial || !r.Unvalidated && r.Idle <= r.RTO {
		return
	}
	s.ssthresh = larger(s.ssthresh, bytesOf(cwnd/4*3))
	if r.Unvalidated {
		s.cwnd = bytesOf(max(cwnd/2, c.initial))
		return
	}
	s.cwnd = bytesOf(c.initial)
	s.acked = starlark.MakeInt(0)
}
