package observe

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/control"
)

// TraceFile traces one connection of a pcapng file: the connection of the first segment that
// matches the filter. A packet that a router received and forwarded is reported only once.
func TraceFile(
	r io.Reader, filter string, tell func(control.TracedSegment),
) (control.Traced, error) {
	t := fileTracer{tell: tell}
	var err error
	if t.filter, err = capture.ParseFilter(filter); err != nil {
		return t.done, control.Also(err, control.ErrUsage)
	}
	err = capture.Read(r, func(p *capture.Captured) error {
		t.see(p)
		return nil
	})
	return t.done, err
}

// fileTracer follows a connection through a file.
type fileTracer struct {
	filter   *capture.Filter
	follower capture.Follower
	facts    capture.Facts
	found    bool
	key      capture.Flow
	places   [2]place // the interface where each direction is followed
	last     int64
	tell     func(control.TracedSegment)
	done     control.Traced
}

// place is an interface and direction where a packet was captured.
type place struct {
	known bool
	iface int
	out   bool
}

func (t *fileTracer) see(p *capture.Captured) {
	drop, state := commentOf(p.Comment)
	f := &t.facts
	f.Iface, f.Out, f.Length, f.Dropped = p.Name, p.Out, p.Length, drop != ""
	f.Parse(p.Data)
	from, ok := f.Flow(true)
	if !ok {
		return
	}
	to, _ := f.Flow(false)
	if !t.found {
		if !t.filter.Match(f) {
			return
		}
		t.found, t.key = true, from
		if state.State != "" && !p.Out {
			t.key = to // the capturing node is the left end
		}
	}
	sent := from == t.key
	if !sent && to != t.key {
		return
	}
	at := &t.places[0]
	if !sent {
		at = &t.places[1]
	}
	switch {
	case !at.known:
		*at = place{true, p.Interface, p.Out}
	case drop == "" && (at.iface != p.Interface || at.out != p.Out):
		return // the packet was reported when it arrived
	}
	lost := drop != "" && (!p.Out || state.State == "")
	g, ok := t.follower.Follow(p.Data, f, sent, lost)
	if !ok {
		return
	}
	one := tracedSegment(&t.key, &g)
	one.At, one.SID, one.Iface, one.Sent = time.Unix(0, p.At), -1, p.Name, sent
	one.Drop, one.Connection = drop, state
	if t.done.Segments > 0 {
		one.Since = time.Duration(p.At - t.last)
	}
	t.last = p.At
	t.done.Segments++
	t.tell(one)
}

// commentOf parses the comment of a captured packet: the reason of its drop and the state of its
// connection. The comment has windows in segments, so commentOf sets the MSS to 1.
func commentOf(text string) (drop string, m control.Moment) {
	if why, ok := strings.CutPrefix(text, "dropped: "); ok {
		drop, text, _ = strings.Cut(why, "; ")
	}
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "cwnd":
			m.Cwnd, m.SendMSS = n, 1
		case "ssthresh":
			m.Ssthresh = n
		case "state":
			m.State = value
		case "ca":
			m.Recovery = value
		case "rtt":
			m.RTT, _ = time.ParseDuration(value)
		}
	}
	return drop, m
}
