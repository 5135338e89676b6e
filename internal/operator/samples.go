package operator

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// samplePeriod is the default time between samples.
const samplePeriod = 100 * time.Millisecond

func samples(ctx context.Context, h *Requests, r control.Samples) (control.Sampled, error) {
	var done control.Sampled
	if r.SID >= firstProgramSID {
		return h.programs.samples(ctx, h, &r, cmp.Or(r.Every, samplePeriod))
	}
	c, err := h.conn(r.SID)
	if err != nil {
		return done, err
	}
	w := &sampling{
		host: h, news: node.NewQueue[control.Sample](maxFindings), sid: r.SID,
		every: cmp.Or(r.Every, samplePeriod),
	}
	stop, err := c.WatchSamples(w.note, w.news.End)
	if err != nil {
		return done, fmt.Errorf("%d: %w", r.SID, control.Reason(err))
	}
	if r.Begun != nil {
		r.Begun()
	}
	w.news.Each(ctx, h.node.Stopped(), func(s control.Sample) {
		done.Samples++
		if r.Sample != nil {
			r.Sample(s)
		}
	})
	stop()
	done.Missed = w.missed.Load()
	return done, nil
}

// sampling is a running request for a connection's samples.
type sampling struct {
	host  *Requests
	news  *node.Queue[control.Sample]
	every time.Duration
	sid   int
	last  control.Sample
	at    clock.Time
	gap   uint64 // samples dropped since the last one that had room

	missed atomic.Uint64
}

// note passes on a sample if the period is over, or if an event has happened.
func (w *sampling) note(s *tcp.Info) {
	state := stack.StateName(s.State)
	if was := w.last.Info; was != nil && s.Time < w.at.Add(w.every) && was.CAState == s.CAState &&
		was.TotalRetrans == s.TotalRetrans && was.TotalRTO == s.TotalRTO && w.last.State == state {
		return
	}
	w.at = s.Time
	w.last = control.Sample{
		At: w.host.node.Time.Wall(s.Time), SID: w.sid, State: state,
		Acked: s.Una, Sent: s.Nxt, Received: s.RcvNxt,
		Info: new(s.Info), Missed: w.gap,
	}
	if w.news.Add(w.last) {
		w.gap = 0
		return
	}
	w.gap++
	w.missed.Add(1)
}
