package api

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Bounds of what is told of a connection's segments.
const (
	batchTime    = 100 * time.Millisecond // of segments that are told together
	mostSegments = 200                    // that are told at a stretch, before there is a pause
	mostArrivals = 1000                   // at the other end, which sees first what was under way
	settleTime   = 700 * time.Millisecond // for the last of a stretch to arrive at the other end
	followPause  = time.Second
)

// trace tells of a connection's segments: of a slow one all, of a fast one a stretch now and then,
// because more could not be read.
func (h *hub) trace(ctx context.Context, f follow) {
	for recorded := true; ctx.Err() == nil; recorded = false {
		if err := h.stretch(ctx, f, recorded); err != nil {
			return // it has ended, and the samples say so
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
}

// stretch tells of some of a connection's segments, as its two ends see them, if both are known,
// and as nodes between them drop them.
func (h *hub) stretch(ctx context.Context, f follow, recorded bool) error {
	ctx, over := context.WithCancel(ctx)
	now := h.nodes.now.Load()
	var (
		wait sync.WaitGroup
		all  batches
	)
	look := func(node string, sid int, r control.Trace) error {
		r.Segment = func(s control.TracedSegment) { all.add(node, sid, s) }
		m := now.member(node)
		if m == nil {
			return now.noSuch(node)
		}
		_, err := control.Ask(ctx, m.op, r)
		return err
	}
	wait.Go(func() {
		every := time.NewTicker(batchTime)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				all.tell(h, f)
			}
		}
	})
	if f.peer != "" {
		wait.Go(func() {
			_ = look(f.peer, f.peerSID, control.Trace{
				SID: f.peerSID, Count: mostArrivals, Recorded: recorded,
			})
		})
		for node, flow := range between(ctx, now, f) {
			wait.Go(func() {
				_ = look(node, -1, control.Trace{Filter: flow, Count: mostSegments, Drops: true})
			})
		}
	}
	err := look(f.node, f.sid, control.Trace{SID: f.sid, Count: mostSegments, Recorded: recorded})
	if err == nil && f.peer != "" {
		select {
		case <-ctx.Done():
		case <-time.After(settleTime):
		}
	}
	over()
	wait.Wait()
	all.tell(h, f)
	return err
}

// between are the nodes that may lose a connection's segments on their way, and what tells its
// segments there from others.
func between(ctx context.Context, now *served, f follow) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	nodes := map[string]string{}
	m := now.member(f.node)
	if m == nil {
		return nodes
	}
	sockets, err := control.Ask(ctx, m.op, control.Sockets{})
	i := slices.IndexFunc(sockets, func(s control.Socket) bool { return s.SID == f.sid })
	if err != nil || i < 0 {
		return nodes
	}
	l, r := sockets[i].Local, sockets[i].Remote
	for node := range now.members {
		if node != f.node && node != f.peer {
			nodes[node] = fmt.Sprintf("drop and tcp and host %v and host %v and port %d and "+
				"port %d", l.Addr(), r.Addr(), l.Port(), r.Port())
		}
	}
	return nodes
}

// batches are segments that are told together, by who has seen them.
type batches struct {
	mu   sync.Mutex
	list []Segments
}

func (b *batches) add(node string, sid int, s control.TracedSegment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.list, func(x Segments) bool { return x.Node == node })
	if i < 0 {
		i = len(b.list)
		b.list = append(b.list, Segments{Node: node, SID: sid})
	}
	b.list[i].Segments = append(b.list[i].Segments, s)
}

// tell passes them on.
func (b *batches) tell(h *hub, f follow) {
	b.mu.Lock()
	list := b.list
	b.list = nil
	b.mu.Unlock()
	for _, s := range list {
		s.Of = fmt.Sprintf("%s/%d", f.node, f.sid)
		h.looked(f, "segments", s)
	}
}
