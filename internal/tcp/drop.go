package tcp

// Drop is the reason why a segment, or part of one, was dropped.
type Drop uint8

// The reasons.
const (
	DropNoConnection Drop = iota // no connection has this tuple and no listener this port
	DropBacklog                  // the listener's queues are full
	DropFlags                    // flags that are invalid in this state
	DropSequence                 // outside the receive window
	DropDuplicate                // all data was received before
	DropAck                      // acknowledges data that was never sent, or is far too old
	DropNoAck                    // has no ACK flag although the state requires it
	DropReset                    // a reset that is not at RCV.NXT (RFC 5961 §3.2)
	DropSYN                      // a SYN in a synchronized state (RFC 5961 §4.2)
	DropWindow                   // data beyond the window
	DropRanges                   // data that would make more gaps than MaxReceiveRanges
	DropReplies                  // a reply while the reply queue was full
	DropClosed                   // data after the user has closed the connection
	DropTimeWait                 // old segments of a connection in TIME-WAIT
	DropOldStamp                 // a timestamp older than TS.Recent (RFC 7323 §5.3)
	DropMemory                   // out-of-order data beyond Limits.EarlyBytes
	DropNoStamp                  // no timestamp although both ends send them (RFC 7323 §3.2)
	NumDrops
)

var dropNames = [NumDrops]string{
	"no connection", "listen queue full", "bad flags", "outside window", "duplicate",
	"unacceptable ack", "no ack", "inexact reset", "syn in window", "beyond window",
	"too many gaps", "reply queue full", "data after close", "in time-wait",
	"old timestamp", "out-of-order memory full", "no timestamp",
}

// String returns the reason's short name.
func (d Drop) String() string { return nameOf(dropNames[:], d) }

// Drops counts segments by reason.
type Drops [NumDrops]uint64

// Counters are a host's totals.
type Counters struct {
	SegmentsIn, SegmentsOut uint64
	// Opened counts connections that were started or accepted, Refused the resets that answered
	// segments.
	Opened, Refused uint64
	// ChallengeAcks counts challenge ACKs sent, ChallengesSpared challenge ACKs that the budget
	// prevented.
	ChallengeAcks, ChallengesSpared uint64
	Timeouts, Retransmits           uint64
	// CookiesSent counts cookies sent, CookiesAccepted valid ones that came back, and CookiesFailed
	// invalid or old ones.
	CookiesSent, CookiesAccepted, CookiesFailed uint64
}
