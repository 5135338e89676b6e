package api

import (
	"context"
	"errors"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// followTime is the interval between two samples of a followed connection.
const followTime = 50 * time.Millisecond

// follow selects the samples or the segments of a connection.
type follow struct {
	node     string
	sid      int
	segments bool
	// peer and peerSID identify the other end of the connection, whose segments are included. They
	// are empty if it is unknown.
	peer    string
	peerSID int
}

// follow samples a connection until it closes or ctx ends.
func (h *feed) follow(ctx context.Context, f follow) {
	now := h.nodes.now.Load()
	m := now.member(f.node)
	if m == nil { // removed since the request was checked
		h.addFollowed(f, "sample", Look{Node: f.node, SID: f.sid, Over: now.noSuch(f.node).Error()})
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
		Sample: func(s control.Sample) { h.addFollowed(f, "sample", Look{f.node, f.sid, &s, ""}) },
	})
	err = gone(ctx, err)
	if ctx.Err() != nil && !errors.Is(err, ErrGone) {
		return // there are no readers
	}
	why := "the connection is closed"
	if err != nil {
		why = err.Error()
	}
	h.addFollowed(f, "sample", Look{Node: f.node, SID: f.sid, Over: why})
}
