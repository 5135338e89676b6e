package operator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// samplePeriod is the default time between samples.
const samplePeriod = 100 * time.Millisecond

// samples handles control.Samples.
func samples(ctx context.Context, h *Requests, r control.Samples) (control.Sampled, error) {
	var done control.Sampled
	c, err := h.conn(r.SID)
	if err != nil {
		return done, err
	}
	f := newFindings[control.Sample]()
	w := &sampling{
		host: h, found: &f, every: cmp.Or(r.Every, samplePeriod), sid: r.SID,
	}
	stop, err := c.WatchSamples(w.note, func() { close(f.ended) })
	if err != nil {
		return done, fmt.Errorf("%d: %w", r.SID, control.Reason(err))
	}
	if r.Begun != nil {
		r.Begun()
	}
	f.each(ctx, h.node, func(s control.Sample) {
		done.Samples++
		if r.Sample != nil {
			r.Sample(s)
		}
	})
	stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	done.Missed = f.missed
	return done, nil
}

// sampling is a running request for a connection's samples. Loop only.
type sampling struct {
	host  *Requests
	found *findings[control.Sample]
	every time.Duration
	sid   int
	last  control.Sample
	at    clock.Time
	gap   uint64
}

// note passes on a sample if it is time, or if an event has happened.
func (w *sampling) note(s *tcp.Info) {
	state := stack.StateName(s.State)
	if was := w.last.Info; was != nil && s.Time < w.at.Add(w.every) && was.Recovery == s.Recovery &&
		was.Retransmits == s.Retransmits && was.Timeouts == s.Timeouts && w.last.State == state {
		return
	}
	w.at = s.Time
	w.last = control.Sample{
		At: w.host.node.Time.Wall(s.Time), SID: w.sid, State: state,
		Acked: s.Una, Sent: s.Nxt, Received: s.RcvNxt,
		Info: stack.ConnInfo(*s, s.Time), Missed: w.gap,
	}
	if w.found.add(w.last) {
		w.gap = 0
	} else {
		w.gap++
	}
}
