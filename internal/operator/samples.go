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

// samples tells of a connection's state.
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

// sampling is one request for a connection's samples. The loop's.
type sampling struct {
	host  *Requests
	found *findings[control.Sample]
	every time.Duration
	sid   int
	last  control.Sample
	at    clock.Time
	gap   uint64
}

// note tells of a sample if it is time, or if something has happened.
func (w *sampling) note(s *tcp.Info) {
	if w.at != clock.Never && s.Time < w.at.Add(w.every) && w.last.Recovery == s.Recovery &&
		w.last.Retransmits == s.Retransmits && w.last.Timeouts == s.Timeouts &&
		w.last.State == stack.StateName(s.State) {
		return
	}
	w.at = s.Time
	w.last = control.Sample{
		At: w.host.node.Time.Wall(s.Time), SID: w.sid, State: stack.StateName(s.State),
		Recovery:   s.Recovery,
		Congestion: s.Congestion, Cwnd: s.Cwnd, Ssthresh: s.Ssthresh, Pipe: s.Pipe,
		SendWindow: s.SendWindow, RecvWindow: s.RecvWindow, MSS: s.SendMSS,
		RoundTrips: control.RoundTrips{
			RTT: s.RTT, RTTVar: s.RTTVar, MinRTT: s.MinRTT, LatestRTT: s.LatestRTT, RTO: s.RTO,
		},
		Acked: s.Una, Sent: s.Nxt, Received: s.RcvNxt,
		DeliveryRate: uint64(s.DeliveryRate) * 8, PacingRate: uint64(s.PacingRate) * 8,
		Retransmits: s.Retransmits, Timeouts: s.Timeouts, TailProbes: s.TailProbes,
		Limited: s.Limited.String(), LimitedFor: s.Time.Sub(s.LimitedSince),
		NotSent: s.NotSent, Unread: s.Unread, Missed: w.gap,
	}
	if w.found.add(w.last) {
		w.gap = 0
	} else {
		w.gap++
	}
}
