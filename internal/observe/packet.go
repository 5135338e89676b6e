// Package observe copies a node's packets to captures and traces. The node does not wait for any of
// them.
//
// The node's loop copies packets into an Observer's batches (observer.go, batch.go, queue.go). A
// goroutine of each capture (capture.go, file.go, pcap.go) or trace (trace.go) takes the batches.
// If it falls behind, the node drops and counts the oldest packets (backlog.go). recorder.go keeps
// the last segments of a connection. tracefile.go traces a connection of a capture file.
package observe

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Packet describes one captured packet.
type Packet struct {
	At         clock.Time
	Iface      int
	Out, Known bool // Known: SID and TraceInfo describe the packet's connection
	Reason     ip.DropReason
	Why        string // reason of a drop below the stack
	Late       bool   // the packet was dropped after an observer had read it as sent
	Length     int    // length on the link
	begin, end int    // offsets in the batch's data
	Missed     uint64 // packets missed between the previous packet and this one
	SID        int
	TraceInfo  tcp.TraceInfo
}

// Dropped returns the reason of a drop; empty: the packet was not dropped.
func (s *Packet) Dropped() string {
	if s.Why == "" && s.Reason != ip.DropNone {
		return s.Reason.String()
	}
	return s.Why
}

// State returns a capture's comment on the packet's connection.
func (s *Packet) State() string {
	if !s.Known {
		return ""
	}
	g := &s.TraceInfo
	text := ""
	if g.Cwnd > 0 {
		text = fmt.Sprintf("cwnd=%d ", inSegments(g.Cwnd, g.MSS))
	}
	if g.Ssthresh > 0 {
		text += fmt.Sprintf("ssthresh=%d ", inSegments(g.Ssthresh, g.MSS))
	}
	text += "state=" + stack.StateName(g.State) + " ca=" + g.Recovery
	if g.RTT > 0 {
		text += fmt.Sprintf(" rtt=%.3fms", float64(g.RTT)/float64(time.Millisecond))
	}
	if s.SID >= 0 {
		text += fmt.Sprintf(" sid=%d", s.SID)
	}
	return text
}

// CommentCache caches the last comment, because the segments of a burst have the same one.
type CommentCache struct {
	known     bool
	sid       int
	traceInfo tcp.TraceInfo
	text      string
}

// State returns a capture's comment on the packet's connection.
func (d *CommentCache) State(s *Packet) string {
	traceInfo := s.TraceInfo
	traceInfo.Pipe = 0 // Pipe is not part of the comment
	if d.known != s.Known || d.sid != s.SID || d.traceInfo != traceInfo {
		*d = CommentCache{s.Known, s.SID, traceInfo, s.State()}
	}
	return d.text
}

// inSegments converts bytes to segments, because ss shows windows in segments.
func inSegments(bytes, mss int) int {
	if mss <= 0 {
		return bytes
	}
	return bytes / mss
}

// Moment returns the state of the packet's connection for a trace.
func (s *Packet) Moment() control.Moment {
	g := &s.TraceInfo
	return control.Moment{
		State: stack.StateName(g.State), Recovery: g.Recovery, Congestion: g.Congestion,
		Cwnd: g.Cwnd, Ssthresh: g.Ssthresh, Pipe: g.Pipe, SendMSS: g.MSS, RTT: g.RTT,
	}
}
