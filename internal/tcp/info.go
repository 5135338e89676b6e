package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// Info is a snapshot of a connection with the fields of Linux's struct tcp_info, under its names.
// The comments give Linux's name where it differs by more than spelling. Windows are in bytes where
// Linux counts segments, and times are time.Duration where Linux counts microseconds or
// milliseconds. Fields for fast open, MPTCP and rehashing are left out.
type Info struct {
	recovery.Info
	Time  clock.Time // time of the snapshot
	State State
	// SACK, WindowScale, Timestamps and ECN were negotiated; Plain: the peer sent no options.
	SACK, WindowScale, Timestamps, ECN, Plain bool
	ECNMarks                                  uint64 // segments that arrived marked (delivered_ce)

	SendScale, RecvScale   uint8         // snd_wscale, rcv_wscale
	ATO                    time.Duration // how long an acknowledgment may wait
	SendMSS, RecvMSS       int           // snd_mss, rcv_mss
	AdvMSS, PMTU           int           // advmss: what our SYN offered; pmtu
	SendWindow, RecvWindow int           // snd_wnd, rcv_wnd
	ISS, IRS               uint32        // initial sequence numbers
	Una, Nxt, RcvNxt       uint64        // stream offsets

	// NotSent counts the bytes in Tx that were never sent (notsent_bytes), Unread the bytes in Rx,
	// and OutOfOrder the ranges beyond a gap. OutOfOrderSegs counts all segments that arrived out
	// of order (rcv_ooopack).
	NotSent, Unread, OutOfOrder int
	OutOfOrderSegs              uint64
	// SendBuffer and RecvBuffer are the current sizes (rcv_ssthresh). RecvRTT is the round trip as
	// the receiver measures it (rcv_rtt), RecvSpace the most that was read in one RecvRTT
	// (rcv_space).
	SendBuffer, RecvBuffer, RecvSpace int
	RecvRTT                           time.Duration
	UserTimeout                       time.Duration // TCP_USER_TIMEOUT; zero: none

	BytesSent, BytesAcked, BytesReceived     uint64
	SegsOut, SegsIn, DataSegsOut, DataSegsIn uint64
	Probes                                   int // window probes unanswered

	Limited      Limit
	LimitedSince clock.Time
	// BusyTime is how long data was in flight or waited to be sent. RwndLimited and SndbufLimited
	// are the parts of it that the connection spent waiting for the peer's window and for room in
	// the send buffer.
	BusyTime, RwndLimited, SndbufLimited time.Duration
	// These are the times of the last data segment sent, the last one received and the last ACK;
	// never if there was none.
	LastSent, LastReceived, LastAck clock.Time
}

// Info returns the connection's state (STATUS, RFC 9293 §3.10.6). Before the first data it shows
// the initial window, threshold and rate. If the host's own algorithms define the controller, it
// shows those of RFC 5681 §3.1 instead, because the first call of a script may have side effects.
func (c *Conn) Info() (i Info) {
	if c.snd.rec.Idle() {
		c.leaveIdle()
		defer c.enterIdle()
	}
	if c.snd.rec.CC.Controller == nil && c.state.synchronized() {
		defer c.snd.rec.Preview(c.snd.congestion(c.host.now))()
	}
	s, r := &c.stats, &c.rcv
	i = Info{
		Info: c.snd.rec.Info(), Time: c.host.now, State: c.State(),
		SACK: r.sack, WindowScale: c.hs.has(hsScale), Timestamps: c.hs.has(hsStamps),
		ECN: c.hs.has(hsECN), Plain: c.hs.has(hsPlain), ECNMarks: r.marks,
		SendScale: c.snd.scale, RecvScale: r.scale, ATO: c.host.cfg.DelayedAck,
		SendMSS: c.snd.MSS, RecvMSS: r.mss, AdvMSS: int(c.snd.path.offer()), PMTU: c.snd.path.MTU,
		SendWindow: c.snd.wnd, RecvWindow: r.window(),
		ISS: uint32(c.snd.iss), IRS: uint32(r.irs),
		Una: streamed(c.snd.Una, c.snd.iss), Nxt: streamed(c.snd.Nxt, c.snd.iss),
		RcvNxt:  streamed(r.nxt, r.irs),
		NotSent: c.snd.tx.Len(), Unread: r.rx.Len(),
		OutOfOrder: r.reassembly.ooo.Len(), OutOfOrderSegs: r.early,
		SendBuffer: c.snd.tx.Limit(), RecvBuffer: r.tune.size, RecvSpace: r.tune.copied,
		RecvRTT: r.tune.rtt, UserTimeout: c.snd.wait.limit,
		BytesSent: s.bytesSent, BytesAcked: c.snd.tx.Head(), BytesReceived: r.bytes,
		SegsOut: s.segsOut, SegsIn: s.segsIn,
		DataSegsOut: s.dataSegsOut, DataSegsIn: s.dataSegsIn, Probes: int(c.snd.persist.count),
		Limited: c.snd.limit.by, LimitedSince: c.snd.limit.since,
		LastSent: c.snd.rec.LastSent, LastReceived: r.lastDataAt, LastAck: s.lastAck,
	}
	i.BusyTime, i.RwndLimited, i.SndbufLimited = c.snd.limit.times(c.host.now)
	if c.state.synchronized() {
		i.NotSent = c.snd.unsent()
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

// TraceInfo returns the part of Info that traces need, and is cheaper.
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

// Pending returns the next timeout, retransmissions first. It reports false if no timer runs.
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
			p.Retries = c.keep.asked
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

// SetProbe calls f with the connection's state at every acknowledgment that contains new
// information, whenever data is sent, when the state or the sender's limit changes, at timeouts, at
// tail and window probes, and when the sender enters, leaves or undoes a recovery or responds to an
// ECN mark. The Info is valid only during the call, and f must not call the connection. A nil f
// turns the probe off.
func (c *Conn) SetProbe(f func(*Info)) {
	c.snd.rec.Changed = nil
	if f != nil {
		c.snd.rec.Changed = func(now clock.Time) { show(c, now, f) }
	}
}

// sample calls the probe.
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
	*i = c.Info()
	i.Time, i.State = now, c.state
	if c.snd.rec.CC.Controller == nil {
		i.NotSent = 0
	}
	f(i)
}
