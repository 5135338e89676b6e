package iperf

import (
	"cmp"
	"runtime"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// The report is what iperf3 prints. It is computed from the counters of the streams.

// version is the version that a client and a report announce.
const version = "3.12" // the iperf3 version with the same protocol and report format

// begin reports the values that are known before the first byte.
func (t *test) begin() {
	p, r := &t.group.params, &t.report.Start
	now := time.Now()
	r.Version = "tidepool, as iperf " + version
	r.SystemInfo = t.host.name + " on " + runtime.GOOS + " " + runtime.GOARCH
	r.Timestamp = control.PerfTimestamp{
		Time: now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"), Timesecs: now.Unix(),
	}
	peer := control.PerfHost{
		Host: t.control.conn.Remote().Addr().String(), Port: t.control.conn.Remote().Port(),
	}
	if t.server {
		r.AcceptedConnection = &peer
	} else {
		r.ConnectingTo = &peer
	}
	r.Cookie, r.TargetBitrate, r.SockBufsize = t.cookie.String(), p.Bandwidth, p.Window
	if i, err := t.control.conn.Info(); err == nil && p.Proto() == "TCP" {
		r.TCPMSSDefault = i.SndMSS
	}
	r.TestStart = control.PerfTestStart{
		Protocol: p.Proto(), NumStreams: p.Parallel, Blksize: p.Len, Omit: p.Omit,
		Duration: p.Time, Bytes: p.Num, Blocks: p.Blocks, TOS: p.TOS, TargetBitrate: p.Bandwidth,
		Reverse: int(boolToInt(p.Reverse)), Bidir: int(boolToInt(p.Bidir)),
	}
	for _, s := range t.streams {
		r.Connected = append(r.Connected, control.PerfConnected{
			Socket: s.socket, LocalHost: s.local.Addr().String(), LocalPort: s.local.Port(),
			RemoteHost: s.remote.Addr().String(), RemotePort: s.remote.Port(),
		})
		if i := s.info(); i != nil {
			r.SndbufActual, r.RcvbufActual = i.SndBuf, i.RcvBuf
		}
	}
	if t.start != nil {
		t.start(*r)
	}
}

func boolToInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// reportLastInterval reports the last, shorter interval, unless it is negligibly short.
func (t *test) reportLastInterval(now time.Time) {
	if since := now.Sub(t.reportedAt); t.every > 0 && since >= t.every/10 {
		t.reportInterval(now)
	}
}

func (t *test) reportInterval(now time.Time) {
	from, to := t.reportedAt.Sub(t.from).Seconds(), now.Sub(t.from).Seconds()
	t.reportedAt = now
	omitted := !t.group.counting.Load()
	var i control.PerfInterval
	var sums [2]directionSum // the sums of the receivers on this node, and of the senders
	for _, s := range t.streams {
		info := s.info()
		c := s.count(info)
		d := c.minus(s.last)
		s.last = c
		row := newRow(from, to, d.bytes)
		row.Socket, row.Sender, row.Omitted = s.socket, s.sender, &omitted
		t.addMeasurements(&row, s, d, s.jitter())
		s.seen.add(&row, info)
		i.Streams = append(i.Streams, row)
		sums[boolToInt(s.sender)].add(d, s.jitter())
	}
	row := func(sender bool) *control.PerfRow {
		sum := &sums[boolToInt(sender)]
		row := newRow(from, to, sum.bytes)
		row.Sender, row.Omitted = sender, &omitted
		for _, s := range t.streams {
			if s.sender == sender {
				t.addMeasurements(&row, s, sum.totals, sum.jitter())
				break
			}
		}
		return &row
	}
	i.Sum = *row(sums[1].n > 0)
	if sums[0].n > 0 && sums[1].n > 0 {
		i.SumBidirReverse = row(false)
	}
	if len(t.report.Intervals) < maxIntervals {
		t.report.Intervals = append(t.report.Intervals, i)
	}
	if t.interval != nil {
		t.interval(i)
	}
}

// maxIntervals limits the intervals of a report: a day has 86,400 of one second.
const maxIntervals = 100_000

// directionSum adds up streams of one direction.
type directionSum struct {
	totals
	jitterSum time.Duration // sum of the streams' jitter
	n         int
	seconds   float64 // duration of the longest stream
}

func (s *directionSum) add(c totals, jitter time.Duration) {
	s.totals = s.plus(c)
	s.jitterSum += jitter
	s.n++
}

func (s *directionSum) jitter() time.Duration { return s.jitterSum / time.Duration(max(1, s.n)) }

func newRow(from, to float64, bytes int64) control.PerfRow {
	r := control.PerfRow{Start: from, End: to, Seconds: to - from, Bytes: bytes}
	if r.Seconds > 0 {
		r.BitsPerSecond = float64(bytes) * 8 / r.Seconds
	}
	return r
}

func (t *test) addMeasurements(row *control.PerfRow, s *stream, d totals, jitter time.Duration) {
	switch {
	case t.group.params.UDP && s.sender:
		row.Packets = &d.packets
	case t.group.params.UDP:
		lossRow(row, d, jitter)
	case s.sender && t.group.params.Proto() == "TCP":
		row.Retransmits = &d.retransmits
	}
}

func lossRow(row *control.PerfRow, d totals, jitter time.Duration) {
	ms := jitter.Seconds() * 1000
	percent := 0.0
	if d.packets > 0 {
		percent = 100 * float64(d.lost) / float64(d.packets)
	}
	row.JitterMS, row.LostPackets, row.Packets, row.LostPercent = &ms, &d.lost, &d.packets, &percent
}

// add updates the peaks from a sender's TCP state, and adds the values to the row.
func (p *peaks) add(row *control.PerfRow, i *tcp.Info) {
	if i == nil {
		return
	}
	cwnd, wnd, mtu := int64(i.SndCwnd), int64(i.SndWnd), int64(i.PMTU)
	rtt, rttvar := i.RTT.Microseconds(), i.RTTVar.Microseconds()
	row.SndCwnd, row.SndWnd, row.RTT, row.RTTVar, row.PMTU = &cwnd, &wnd, &rtt, &rttvar, &mtu
	p.cwnd, p.wnd, p.maxRTT = max(p.cwnd, cwnd), max(p.wnd, wnd), max(p.maxRTT, rtt)
	if p.n == 0 || rtt < p.minRTT {
		p.minRTT = rtt
	}
	p.sumRTT += rtt
	p.n++
}

// view holds the values of a stream that one end measured.
type view struct {
	totals
	jitter  time.Duration
	seconds float64
	known   bool // this end reports retransmissions
}

func (t *test) views(s *stream, theirs *Results) (sender, receiver view) {
	own := view{
		totals: s.count(s.info()).minus(s.base), jitter: s.jitter(),
		seconds: t.until.Sub(t.from).Seconds(), known: true,
	}
	var other view
	if r, ok := theirs.Of(s.id); ok {
		omittedErrors, omittedPackets := int64(r.OmittedErrors), int64(r.OmittedPackets)
		if omittedPackets == 0 { // like iperf3 of 2022, the other end does not report the value
			omittedPackets = s.base.packets
		}
		other = view{
			totals: totals{
				bytes: int64(r.Bytes), retransmits: max(0, int64(r.Retransmits)),
				packets: max(0, int64(r.Packets)-omittedPackets),
				lost:    max(0, int64(r.Errors)-omittedErrors),
			},
			jitter:  time.Duration(r.Jitter * float64(time.Second)),
			seconds: r.End, known: r.Retransmits >= 0,
		}
		other.seconds = cmp.Or(other.seconds, own.seconds)
	}
	if s.sender {
		return own, other
	}
	return other, own
}

func (t *test) finish(theirs *Results) {
	e := &t.report.End
	var sums [2][2]directionSum // sums by direction, and by the end that measured
	for _, s := range t.streams {
		sender, receiver := t.views(s, theirs)
		direction := &sums[boolToInt(s.sender)]
		for i, v := range []*view{&sender, &receiver} {
			direction[i].add(v.totals, v.jitter)
			direction[i].seconds = max(direction[i].seconds, v.seconds)
		}
		e.Streams = append(e.Streams, t.streamEnd(s, &sender, &receiver))
	}
	main := boolToInt(sums[1][0].n > 0)
	e.SumSent = t.sumRow(&sums[main], main == 1, 0)
	e.SumReceived = t.sumRow(&sums[main], main == 1, 1)
	if t.group.params.Bidir {
		sent, received := t.sumRow(&sums[0], false, 0), t.sumRow(&sums[0], false, 1)
		e.SumSentBidirReverse, e.SumReceivedBidirReverse = &sent, &received
	}
	if t.group.params.UDP {
		sum := e.SumSent
		lossRow(&sum, sums[main][1].totals, sums[main][1].jitter())
		e.Sum = &sum
	}
	c := &e.CPUUtilizationPercent
	c.HostTotal, c.HostUser, c.HostSystem = t.used.percent(t.until.Sub(t.from))
	c.RemoteTotal, c.RemoteUser, c.RemoteSystem = theirs.CPUTotal, theirs.CPUUser, theirs.CPUSystem
	if t.group.params.Proto() == "TCP" {
		e.SenderTCPCongestion, e.ReceiverTCPCongestion = t.algo(), theirs.Congestion
		if main == 0 {
			e.SenderTCPCongestion, e.ReceiverTCPCongestion = theirs.Congestion, t.algo()
		}
	}
}

// sumRow returns the sum of one direction as its sender (0) or its receiver (1) measured it.
func (t *test) sumRow(direction *[2]directionSum, sender bool, end int) control.PerfRow {
	sum := &direction[end]
	row := newRow(0, sum.seconds, sum.bytes)
	row.Sender = sender
	switch {
	case t.group.params.UDP:
		row.Sender = end == 0
		if end == 0 { // a sender measures neither loss nor jitter
			lossRow(&row, totals{packets: sum.packets}, 0)
			break
		}
		lossRow(&row, sum.totals, sum.jitter())
	case end == 0 && t.group.params.Proto() == "TCP":
		row.Retransmits = &sum.retransmits
	}
	return row
}

func (t *test) streamEnd(s *stream, sender, receiver *view) control.PerfStreamEnd {
	from := newRow(0, sender.seconds, sender.bytes)
	to := newRow(0, receiver.seconds, receiver.bytes)
	from.Socket, to.Socket, from.Sender, to.Sender = s.socket, s.socket, s.sender, s.sender
	if t.group.params.UDP {
		both := from
		lossRow(&both, receiver.totals, receiver.jitter)
		both.OutOfOrder = &receiver.early
		lossRow(&from, totals{packets: sender.packets}, 0)
		lossRow(&to, receiver.totals, receiver.jitter)
		return control.PerfStreamEnd{UDP: &both, Sender: &from, Receiver: &to}
	}
	if t.group.params.Proto() == "TCP" && sender.known {
		from.Retransmits = &sender.retransmits
		p := s.seen
		mean := p.sumRTT / max(1, p.n)
		from.MaxSndCwnd, from.MaxSndWnd = &p.cwnd, &p.wnd
		from.MaxRTT, from.MinRTT, from.MeanRTT = &p.maxRTT, &p.minRTT, &mean
	}
	return control.PerfStreamEnd{Sender: &from, Receiver: &to}
}
