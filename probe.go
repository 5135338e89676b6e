package tidepool

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

// Sample is a connection's state at one instant. Where Linux's TCP_INFO has a field
// it has that name here too. Info tells more.
type Sample struct {
	// Time is the instant, of the node's Clock if it has one.
	Time time.Time
	// State is RFC 9293 §3.3.2's name, with underscores; CAState, of loss recovery, is
	// open, recovery or loss.
	State, CAState string
	// SndCwnd and SndSsthresh are the congestion window and where slow start ends, in
	// bytes; a threshold of 0: no loss has set one.
	SndCwnd, SndSsthresh int
	// SndWnd is the peer's window, and Pipe what is in flight (RFC 6675), in bytes.
	SndWnd, Pipe int
	// NotSentBytes wait to be sent for the first time, and Unread to be read.
	NotSentBytes, Unread int
	// RTT and RTTVar are RFC 6298's smoothed round trip and its variation; 0: none was
	// measured yet.
	RTT, RTTVar, MinRTT time.Duration
	// LatestRTT is the last round trip alone, and RTO the retransmission time-out.
	LatestRTT, RTO time.Duration
	// Acked, Sent and Received are how many bytes the peer has acknowledged, how many
	// it was sent, and how many came from it in order.
	Acked, Sent, Received uint64
	// DeliveredBytes are those of the bytes sent that the peer has reported, in order or not.
	DeliveredBytes uint64
	// DeliveryRate is how fast they were delivered lately, in bits per second.
	DeliveryRate uint64
	// TotalRetrans counts segments sent again, and TotalRTO retransmission time-outs.
	TotalRetrans, TotalRTO uint64
	// TailProbes counts those of RFC 8985 §7, and Missed the samples that were not kept
	// because the function lagged behind.
	TailProbes, Missed uint64
	// Limited is why no more is in flight: app, cwnd, rwnd, sndbuf, pacing, nagle, cork,
	// persist, recovery, handshake, idle or none.
	Limited string
	// LimitedFor is since when.
	LimitedFor time.Duration
}

// Probe has f called with the connection's state at every acknowledgment that changes
// it, every change of its State and of what limits it, every time-out and probe, and at
// the beginning and end of every recovery. A second Probe takes the first's place, and a
// nil f ends it: when Probe returns, what was set before has had its last call. The end
// of the connection ends it too.
//
// F runs in a goroutine of its own, a call after the other in the order of time, and may
// do whatever it likes but call Probe: the node does not wait for it. Of what happens
// meanwhile the first 4096 samples are kept, and the others counted in Missed. A
// connection without a probe pays nothing for this.
//
// The error of a connection or node that has ended is net.ErrClosed or the
// connection's own. To end a probe is never an error.
func (c *Conn) Probe(f func(Sample)) error {
	if f == nil {
		return c.inner().Probe(nil)
	}
	return c.inner().Probe(func(s node.Sample) { f(Sample(s)) })
}

// String returns the most of it in a line.
func (s Sample) String() string {
	return fmt.Sprintf("%s %s %s cwnd:%d ssthresh:%d pipe:%d snd_wnd:%d rtt:%v/%v rto:%v "+
		"acked:%d notsent:%d retrans:%d delivery_rate:%dbps limited:%s",
		s.Time.Format("15:04:05.000000"), s.State, s.CAState, s.SndCwnd, s.SndSsthresh, s.Pipe,
		s.SndWnd, s.RTT, s.RTTVar, s.RTO, s.Acked, s.NotSentBytes, s.TotalRetrans, s.DeliveryRate,
		s.Limited)
}
