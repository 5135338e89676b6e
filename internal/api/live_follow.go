package api

import (
	"context"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Bounds of what is told of a connection that somebody follows.
const (
	followTime   = 50 * time.Millisecond  // between looks at it
	batchTime    = 100 * time.Millisecond // of segments that are told together
	mostSegments = 200                    // that are told at a stretch, before there is a pause
	followPause  = time.Second
)

// follow names what is followed: a connection's state, or its segments.
type follow struct {
	node     string
	sid      int
	segments bool
}

// follow looks at one connection until it has ended or ctx does.
func (h *hub) follow(ctx context.Context, f follow) {
	op, ok := h.server.nodes[f.node]
	if !ok {
		return // a request that asks for it is refused
	}
	if f.segments {
		h.trace(ctx, f, op)
		return
	}
	_, err := control.Ask(ctx, op, control.Samples{
		SID: f.sid, Every: followTime,
		Sample: func(s control.Sample) { h.looked(f, "sample", Look{f.node, f.sid, &s, ""}) },
	})
	if ctx.Err() != nil {
		return
	}
	why := "it has ended"
	if err != nil {
		why = err.Error()
	}
	h.looked(f, "sample", Look{Node: f.node, SID: f.sid, Over: why})
}

// trace tells of a connection's segments: of a slow one all, of a fast one a stretch now and then,
// because more could not be read.
func (h *hub) trace(ctx context.Context, f follow, op control.Operator) {
	for ctx.Err() == nil {
		var (
			mu   sync.Mutex
			list []control.TracedSegment
		)
		flush := func() {
			mu.Lock()
			defer mu.Unlock()
			if len(list) > 0 {
				h.looked(f, "segments", Segments{f.node, f.sid, list})
				list = nil
			}
		}
		stretch, over := context.WithCancel(ctx)
		h.done.Go(func() {
			defer flush()
			for every := time.NewTicker(batchTime); ; flush() {
				select {
				case <-stretch.Done():
					every.Stop()
					return
				case <-every.C:
				}
			}
		})
		_, err := control.Ask(ctx, op, control.Trace{
			SID: f.sid, Count: mostSegments,
			Segment: func(s control.TracedSegment) {
				mu.Lock()
				defer mu.Unlock()
				list = append(list, s)
			},
		})
		over()
		if err != nil {
			return // it has ended, and the samples say so
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
}
