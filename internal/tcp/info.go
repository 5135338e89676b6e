package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// Info is the state of a connection: recovery.Info, and values that only this node shows.
type Info struct {
	recovery.Info
	Time     clock.Time // time of the snapshot
	State    State
	ISS, IRS uint32 // initial sequence numbers
	Una, Nxt uint64 // SND.UNA and SND.NXT as offsets in the stream
	RcvNxt   uint64 // RCV.NXT as an offset in the stream
}

// Info returns the connection's state at the host's time: see InfoAt.
func (c *Conn) Info() Info { return c.InfoAt(c.host.now) }

// InfoAt returns the connection's state (STATUS, RFC 9293 §3.10.6). Before the first data it shows
// the initial window, threshold and rate. If the host's own algorithms define the controller, it
// shows the values of RFC 5681 §3.1 instead, because the first call of a script may have side
// effects.
func (c *Conn) InfoAt(now clock.Time) (i Info) {
	if c.snd.rec.Idle() {
		c.leaveIdle()
		defer c.enterIdle()
	}
	if c.snd.rec.CC.Controller == nil && c.state.synchronized() {
		defer c.snd.rec.Preview(c.snd.congestion(c.host.now))()
	}
	since := func(t clock.Time) time.Duration {
		if t == clock.Never {
			return 0
		}
		return now.Sub(t)
	}
	s, r := &c.stats, &c.rcv
	i = Info{
		Info: c.snd.rec.Info(), Time: now, State: c.State(),
		ISS: uint32(c.snd.iss), IRS: uint32(r.irs),
		Una: streamed(c.snd.Una, c.snd.iss), Nxt: streamed(c.snd.Nxt, c.snd.iss),
		RcvNxt: streamed(r.nxt, r.irs),
	}
	i.SACK, i.Timestamps = r.sack, c.hs.has(hsStamps)
	i.ECN, i.Plain, i.ECNMarks = c.hs.has(hsECN), c.hs.has(hsPlain), r.marks
	i.ATO, i.UserTimeout = c.host.cfg.DelayedAck, c.snd.wait.limit
	i.SndMSS, i.RcvMSS, i.AdvMSS = c.snd.MSS, r.mss, int(c.snd.path.offer())
	i.PMTU, i.SndWnd, i.RcvWnd = c.snd.path.MTU, c.snd.wnd, r.window()
	i.NotSentBytes, i.Unread = c.snd.tx.Len(), r.rx.Len()
	i.OutOfOrder, i.RcvOOOPack = r.reassembly.ooo.Len(), r.early
	i.SndBuf, i.RcvBuf = c.snd.tx.Limit(), r.tune.size
	i.RcvSpace, i.RcvRTT = r.tune.copied, r.tune.rtt
	i.BytesSent, i.BytesAcked, i.BytesReceived = s.bytesSent, c.snd.tx.Head(), r.bytes
	i.SegsOut, i.SegsIn = s.segsOut, s.segsIn
	i.DataSegsOut, i.DataSegsIn = s.dataSegsOut, s.dataSegsIn
	i.Probes = int(c.snd.persist.count)
	i.Limited, i.LimitedFor = c.snd.limit.by.String(), since(c.snd.limit.since)
	i.LastDataSent, i.LastDataRecv = since(c.snd.rec.LastSent), since(r.lastDataAt)
	i.LastAckRecv, i.SndWScale, i.RcvWScale = since(s.lastAck), -1, -1
	if c.hs.has(hsScale) {
		i.SndWScale, i.RcvWScale = int(c.snd.scale), int(r.scale)
	}
	i.BusyTime, i.RwndLimited, i.SndbufLimited = c.snd.limit.times(now)
	if c.state.synchronized() {
		i.NotSentBytes = c.snd.unsent()
	}
	return i
}

// TraceInfo is the state of a connection that traces print with each of its segments.
type TraceInfo struct {
	State                State
	Recovery, Congestion string
	Cwnd, Ssthresh       int // bytes; a zero Ssthresh means none
	Pipe                 int // bytes in flight
	MSS                  int // payload of our full segments
	RTT                  time.Duration
}

// TraceInfo returns the part of Info that traces need. It is cheaper than Info.
func (c *Conn) TraceInfo() TraceInfo {
	g := TraceInfo{
		State: c.State(), Recovery: "open", Congestion: c.snd.rec.CC.Name,
		MSS: c.snd.MSS, RTT: c.snd.rec.RTT.SRTT,
	}
	if !c.snd.rec.Idle() {
		g.Recovery, g.Pipe = c.snd.rec.Episode.String(), c.snd.rec.Pipe()
	}
	if c.snd.rec.CC.Controller != nil {
		g.Cwnd, g.Ssthresh = c.snd.rec.CC.Cwnd(), c.snd.rec.CC.Ssthresh()
	}
	return g
}

// Pending is the next timeout of a connection.
type Pending struct {
	// Name is the name that ss prints: "on" for the retransmission timers, "persist" for the window
	// probe, "keepalive" for the keepalive and FIN-WAIT-2.
	Name    string
	At      clock.Time
	Retries int // retransmissions or probes without an answer
}

// Pending returns the timeout of retransmissions, or else of window probes, or else of keepalive
// and FIN-WAIT-2. It reports false if none of these timers runs.
func (c *Conn) Pending() (Pending, bool) {
	again := clock.Earliest(c.snd.rec.At.RTO, c.snd.rec.At.Probe, c.snd.rec.At.Reorder)
	silent := c.finWait2
	if c.keep != nil {
		silent = clock.Earliest(c.keep.at, silent)
	}
	switch {
	case again != clock.Never:
		return Pending{"on", again, int(c.snd.rec.Retries)}, true
	case c.snd.persist.at != clock.Never:
		return Pending{"persist", c.snd.persist.at, int(c.snd.persist.count)}, true
	case silent != clock.Never:
		p := Pending{Name: "keepalive", At: silent}
		if c.keep != nil {
			p.Retries = c.keep.probes
		}
		return p, true
	}
	return Pending{}, false
}

// Arrival says what the receiver does with a segment's data.
type Arrival uint8

// The kinds of arrival.
const (
	ArrivalEmpty   Arrival = iota // no data
	ArrivalNext                   // begins at RCV.NXT: readable at once
	ArrivalEarly                  // within the window: kept until the gap is filled
	ArrivalOutside                // beyond the window: dropped
	ArrivalOld                    // received before
	ArrivalEnded                  // after the peer's FIN: ignored
)

var arrivalNames = [...]string{
	"", "next", "early, kept", "outside the window, dropped", "received before",
	"behind the FIN, ignored",
}

// String returns the kind in a few words.
func (a Arrival) String() string { return arrivalNames[a] }

// Arrival returns what the receiver would do with n bytes of data at seq.
func (c *Conn) Arrival(seq uint32, n int) Arrival {
	r := &c.rcv
	if n == 0 || !c.state.synchronized() {
		return ArrivalEmpty
	}
	start := widen(r.nxt, seq)
	end := start + uint64(n)
	switch {
	case end <= r.nxt:
		return ArrivalOld
	case !c.state.mayReceive(), r.fin != 0 && start >= r.fin:
		return ArrivalEnded
	case start >= r.offeredEdge():
		return ArrivalOutside
	case start <= r.nxt:
		return ArrivalNext
	case r.reassembly != nil && r.reassembly.ooo.Covers(r.offset(start), r.offset(end)):
		return ArrivalOld
	}
	return ArrivalEarly
}

// Reassembly is the receiver's state in sequence numbers.
type Reassembly struct {
	Next uint32 // RCV.NXT
	// Window is the receive window in bytes that the peer knows.
	Window int
	// Readable is the number of bytes before RCV.NXT that the application has not read.
	Readable int
	// Held lists the ranges beyond a gap, lowest first. A FIN counts as a byte.
	Held []SACKBlock
	// Closed says that the peer's FIN and all data before it have arrived.
	Closed bool
}

// Reassembly returns the receiver's state. It allocates.
func (c *Conn) Reassembly() Reassembly {
	r := &c.rcv
	view := Reassembly{
		Next: uint32(r.nxt), Window: r.window(), Readable: r.rx.Len(), Closed: r.done(),
	}
	if r.reassembly == nil {
		return view
	}
	hold := func(b buffer.Range) {
		b = r.numbers(b)
		view.Held = append(view.Held, SACKBlock{Start: uint32(b.Start), End: uint32(b.End)})
	}
	for i := range r.reassembly.ooo.Len() {
		hold(r.reassembly.ooo.At(i))
	}
	if b, alone := r.finAlone(); alone {
		hold(b)
	}
	return view
}

// SetProbe makes the connection call f with its state when data is sent, when an acknowledgment
// contains new information, and at timeouts, tail probes and window probes. It also calls f when
// the state or the sender's limit changes, when a recovery begins, ends or is undone, and when the
// sender responds to an ECN mark. The Info is valid only during the call, and f must not call the
// connection. A nil f turns the probe off.
func (c *Conn) SetProbe(f func(*Info)) {
	c.snd.rec.Changed = nil
	if f != nil {
		c.snd.rec.Changed = func(now clock.Time) { show(c, now, f) }
	}
}

func (c *Conn) sample(now clock.Time) {
	if f := c.snd.rec.Changed; f != nil {
		f(now)
	}
}

func show(c *Conn, now clock.Time, f func(*Info)) {
	c.leaveIdle()
	if c.snd.rec.CC.Controller == nil && c.state.synchronized() {
		c.snd.rec.Begin(c.snd.congestion(c.host.now)) // so that f sees the initial window
	}
	i := &c.host.probed
	*i = c.InfoAt(now)
	i.State = c.state
	if c.snd.rec.CC.Controller == nil {
		i.NotSentBytes = 0
	}
	f(i)
}
