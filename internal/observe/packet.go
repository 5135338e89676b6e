// Package observe shows a node's packets to captures and traces, without the node waiting for any
// of them.
//
// The node's loop copies packets into an Observer's batches (observer.go, batch.go, queue.go), from
// which a goroutine of the capture (capture.go, file.go, pcap.go) or trace (trace.go) takes them.
// When those fall behind, the oldest packets are dropped and counted (backlog.go). recorder.go
// keeps the last segments of a connection. tracefile.go traces a connection of a capture's file.
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

// Packet is one packet as an observer was shown it.
type Packet struct {
	At         clock.Time
	Iface      int
	Out, Known bool // Known: SID and Glance are those of its connection
	Reason     ip.DropReason
	Why        string // it was dropped beneath the stack
	Late       bool   // that was after it had been shown as one that lives
	Length     int    // on the wire
	begin, end int    // in the batch's data
	Missed     uint64 // between the one before and this
	SID        int
	Glance     tcp.Glance
}

// Dropped is why a packet went no further; empty: it did.
func (s *Packet) Dropped() string {
	if s.Why == "" && s.Reason != ip.DropNone {
		return s.Reason.String()
	}
	return s.Why
}

// State is what a capture's comment says of a connection.
func (s *Packet) State() string {
	if !s.Known {
		return ""
	}
	g := &s.Glance
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

// Said is what was said last of a connection: the segments of a train have it in common.
type Said struct {
	known  bool
	sid    int
	glance tcp.Glance
	text   string
}

// State is what a capture's comment says of a packet's connection.
func (d *Said) State(s *Packet) string {
	glance := s.Glance
	glance.Pipe = 0 // of which nothing is said
	if d.known != s.Known || d.sid != s.SID || d.glance != glance {
		*d = Said{s.Known, s.SID, glance, s.State()}
	}
	return d.text
}

// inSegments is a number of bytes in segments, as ss counts windows.
func inSegments(bytes, mss int) int {
	if mss <= 0 {
		return bytes
	}
	return bytes / mss
}

// Moment is what a trace says of a connection.
func (s *Packet) Moment() control.Moment {
	g := &s.Glance
	return control.Moment{
		State: stack.StateName(g.State), Recovery: g.Recovery, Congestion: g.Congestion,
		Cwnd: g.Cwnd, Ssthresh: g.Ssthresh, Pipe: g.Pipe, SendMSS: g.MSS, RTT: g.RTT,
	}
}
