package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// Info is a snapshot of a connection: what Linux's struct tcp_info holds, under its names, which
// the comments give where they differ by more than spelling. Windows are bytes where Linux counts
// segments, times are time.Duration where it counts micro- or milliseconds. What it has of fast
// open, of MPTCP and of rehashing has no meaning here.
type Info struct {
	recovery.Info
	Time  clock.Time // when it was so
	State State
	// options: SACK, WindowScale, Timestamps and ECN were negotiated; Plain says that nothing was.
	SACK, WindowScale, Timestamps, ECN, Plain bool
	ECNMarks                                  uint64 // segments that arrived marked (delivered_ce)

	SendScale, RecvScale   uint8         // snd_wscale, rcv_wscale
	ATO                    time.Duration // how long an acknowledgment may wait
	SendMSS, RecvMSS       int           // snd_mss, rcv_mss
	AdvMSS, PMTU           int           // advmss: what our SYN offered; pmtu
	SendWindow, RecvWindow int           // snd_wnd, rcv_wnd
	ISS, IRS               uint32        // initial sequence numbers: what the SYNs had
	Una, Nxt, RcvNxt       uint64        // stream offsets

	// NotSent is what waits in Tx and was never sent (notsent_bytes); Unread what waits in Rx;
	// OutOfOrder how many ranges arrived early, OutOfOrderSegs how many segments ever
	// (rcv_ooopack).
	NotSent, Unread, OutOfOrder int
	OutOfOrderSegs              uint64
	// SendBuffer and RecvBuffer are the buffers as they are now (rcv_ssthresh). RecvRTT is the
	// round trip as a receiver sees it (rcv_rtt), RecvSpace the most that was read in one
	// (rcv_space).
	SendBuffer, RecvBuffer, RecvSpace int
	RecvRTT                           time.Duration
	UserTimeout                       time.Duration // TCP_USER_TIMEOUT; zero: none

	BytesSent, BytesAcked, BytesReceived     uint64
	SegsOut, SegsIn, DataSegsOut, DataSegsIn uint64
	Probes                                   int // window probes unanswered

	Limited      Limit
	LimitedSince clock.Time
	// BusyTime is how long there was something to send or to be acknowledged; of it RwndLimited
	// was spent waiting for the peer's window and SndbufLimited for room in the send buffer.
	BusyTime, RwndLimited, SndbufLimited time.Duration
	// When the last segment with text was sent and received, and the last ACK; never: not yet.
	LastSent, LastReceived, LastAck clock.Time
}

// Info returns the connection's state: STATUS (RFC 9293 §3.10.6). It shows a connection that has
// not sent anything yet with the window, threshold and rate that its congestion controller will
// start from. An algorithm of the host's own may be a script whose first call has effects: RFC 5681
// §3.1 stands for it.
func (c *Conn) Info() (i Info) {
	if c.snd.rec.Resting() {
		c.busy()
		defer c.rest()
	}
	if c.snd.rec.CC.Controller == nil && c.state.synchronized() {
		defer c.snd.rec.Preview(c.congestionConfig())()
	}
	c.fill(&i)
	return i
}

// fill writes the connection's state into i.
func (c *Conn) fill(i *Info) {
	s, r := &c.stats, &c.rcv
	*i = Info{
		Info: c.snd.rec.Info(), Time: c.host.now, State: c.State(),
		SACK: r.sack, WindowScale: c.hs.has(flagScale), Timestamps: c.hs.has(flagStamps),
		ECN: c.hs.has(flagECN), Plain: c.hs.has(flagPlain), ECNMarks: r.marks,
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
		LastSent: c.snd.rec.LastSent, LastReceived: r.heardAt, LastAck: s.lastAck,
	}
	i.BusyTime, i.RwndLimited, i.SndbufLimited = c.snd.limit.times(c.host.now)
	if c.state.synchronized() {
		i.NotSent = c.snd.unsent()
	}
}

// Glance is what little of a connection is shown beside each of its segments.
type Glance struct {
	State                State
	Recovery, Congestion string
	Cwnd, Ssthresh       int // bytes; a zero Ssthresh means none
	Pipe                 int // bytes in flight
	MSS                  int // of what is sent
	RTT                  time.Duration
}

// Glance returns the connection's state, at the price of a few fields.
func (c *Conn) Glance() Glance {
	g := Glance{
		State: c.State(), Recovery: "open", Congestion: c.snd.rec.CC.Name,
		MSS: c.snd.MSS, RTT: c.snd.rec.RTT.SRTT,
	}
	if !c.snd.rec.Resting() {
		g.Recovery, g.Pipe = c.snd.rec.Episode.String(), c.snd.rec.Pipe()
	}
	if c.snd.rec.CC.Controller != nil {
		g.Cwnd, g.Ssthresh = c.snd.rec.CC.Cwnd(), c.snd.rec.CC.Ssthresh()
	}
	return g
}

// Pending is the time-out that a connection waits for.
type Pending struct {
	// Name is what ss calls it: "on" until something is sent again, "persist" until a window is
	// probed, "keepalive" until a silent peer is asked, or let go.
	Name    string
	At      clock.Time
	Retries int // that were not answered
}

// Pending returns the time-out that matters most; false: none runs.
func (c *Conn) Pending() (Pending, bool) {
	t := &c.timers
	again := clock.Earliest(c.snd.rec.At.RTO, c.snd.rec.At.Probe, c.snd.rec.At.Reorder)
	silent := clock.Earliest(t[timerKeepalive], t[timerFinWait2])
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

// Arrival is what becomes of a segment's text when it arrives: the three kinds
// of founding document 001, and what it left out.
type Arrival uint8

// The kinds of arrival.
const (
	ArrivalEmpty   Arrival = iota // no text
	ArrivalNext                   // begins at RCV.NXT: it can be read at once
	ArrivalEarly                  // within the window: kept until the gap is filled
	ArrivalOutside                // beyond the window: dropped
	ArrivalOld                    // received before
	ArrivalEnded                  // behind the peer's FIN: ignored
)

var arrivalNames = [...]string{
	"", "next", "early, kept", "outside the window, dropped", "received before",
	"behind the FIN, ignored",
}

// String returns the kind in a few words.
func (a Arrival) String() string { return arrivalNames[a] }

// Arrival tells what would become of n bytes of text at seq, now.
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
	case start >= r.limit():
		return ArrivalOutside
	case start <= r.nxt:
		return ArrivalNext
	case r.reassembly != nil && r.reassembly.ooo.Covers(r.offset(start), r.offset(end)):
		return ArrivalOld
	}
	return ArrivalEarly
}

// Reassembly is where a connection's receiver stands, in sequence numbers.
type Reassembly struct {
	Next uint32 // RCV.NXT
	// Window is how many bytes from there on the peer was told that it may send.
	Window int
	// Readable is how many bytes in front of RCV.NXT wait for the user.
	Readable int
	// Held is what came early, the lowest first. A FIN has its number there too.
	Held []SACKBlock
	// Closed says that the peer's FIN is in front of RCV.NXT.
	Closed bool
}

// Reassembly returns where the receiver stands. It allocates.
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

// SetProbe streams the connection's state to f at every acknowledgment that changes anything,
// whenever text was sent, at every change of the state and of what limits the sender,
// at time-outs, at probes of the tail and of the window as they are sent, and as the
// sender begins, ends or takes back a recovery or answers a mark. The Info is lent for
// the call, in which f calls nothing of the connection. Nil stops it.
func (c *Conn) SetProbe(f func(*Info)) {
	c.probe, c.snd.rec.Changed = f, nil
	if f != nil {
		c.snd.rec.Changed = c.sample
	}
}

// sample tells whoever listens.
func (c *Conn) sample(now clock.Time) {
	if c.probe == nil {
		return
	}
	c.busy()
	if c.snd.rec.CC.Controller == nil && c.state.synchronized() {
		c.snd.rec.Begin(c.congestionConfig()) // its window is shown before it is used
	}
	i := &c.host.shot
	c.fill(i)
	i.Time, i.State = now, c.state
	if c.snd.rec.CC.Controller == nil {
		i.NotSent = 0
	}
	c.probe(i)
}
