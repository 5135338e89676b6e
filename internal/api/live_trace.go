package api

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// These are limits of a connection's segments.
const (
	batchTime    = 100 * time.Millisecond // time that the segments of one event span
	mostSegments = 200                    // number of segments sent before a pause
	mostArrivals = 1000                   // limit of segments read at the other end
	settleTime   = 700 * time.Millisecond // wait for the last segments to arrive at the other end
	followPause  = time.Second
)

// trace sends a connection's segments: all of them if there are few, and otherwise samples with
// pauses, because a reader could not follow more.
func (h *feed) trace(ctx context.Context, f follow) {
	for recorded := true; ctx.Err() == nil; recorded = false {
		if err := h.sendSegments(ctx, f, recorded); err != nil {
			return // the connection is closed; the samples report that
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
}

// sendSegments sends some segments of a connection: the segments of both ends if the other end is
// known, and the segments that nodes between them dropped.
func (h *feed) sendSegments(ctx context.Context, f follow, recorded bool) error {
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

// between returns the other nodes, with a filter for the connection's dropped segments.
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

// batches collects segments by node, so that one event contains several.
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

func (b *batches) tell(h *feed, f follow) {
	b.mu.Lock()
	list := b.list
	b.list = nil
	b.mu.Unlock()
	for _, s := range list {
		s.Of = fmt.Sprintf("%s/%d", f.node, f.sid)
		h.addFollowed(f, "segments", s)
	}
}
