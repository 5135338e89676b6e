package api

import (
	"context"
	"errors"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// followTime is between looks at a connection that somebody follows.
const followTime = 50 * time.Millisecond

// follow names what is followed: a connection's state, or its segments.
type follow struct {
	node     string
	sid      int
	segments bool
	// peer and peerSID are the other end, whose segments are told too; empty: not known.
	peer    string
	peerSID int
}

// follow looks at one connection until it has ended or ctx does.
func (h *hub) follow(ctx context.Context, f follow) {
	now := h.nodes.now.Load()
	m := now.member(f.node)
	if m == nil { // it has gone since the request was judged
		h.looked(f, "sample", Look{Node: f.node, SID: f.sid, Over: now.noSuch(f.node).Error()})
		return
	}
	ctx, end := m.within(ctx)
	defer end()
	if f.segments {
		h.trace(ctx, f)
		return
	}
	_, err := control.Ask(ctx, m.op, control.Samples{
		SID: f.sid, Every: followTime,
		Sample: func(s control.Sample) { h.looked(f, "sample", Look{f.node, f.sid, &s, ""}) },
	})
	err = gone(ctx, err)
	if ctx.Err() != nil && !errors.Is(err, ErrGone) {
		return // nobody reads
	}
	why := "the connection is closed"
	if err != nil {
		why = err.Error()
	}
	h.looked(f, "sample", Look{Node: f.node, SID: f.sid, Over: why})
}
