package control

import (
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/icmp"
)

// SendTest sends one packet with the payload Text.
type SendTest struct {
	Answer[TestSent]
	Addr  netip.Addr `json:"addr"`
	Proto uint8      `json:"proto"` // IP protocol; 0: the course's test protocol
	Text  string     `json:"text"`
}

// TestSent is the size of a test packet with its IP header.
type TestSent struct {
	Bytes int `json:"bytes"`
}

// Ping sends ICMP echo requests and waits for the replies (RFC 792). When its context ends, it
// returns the statistics so far.
type Ping struct {
	Answer[PingResult]
	Addr netip.Addr `json:"addr"`
	// Count is the number of requests; 0: until the context ends. With a Deadline it is the number
	// of replies to wait for.
	Count    int           `json:"count"`
	Interval time.Duration `json:"interval_ns"`       // interval between requests; 0: 1 s
	Preload  int           `json:"preload,omitempty"` // number of requests to send at once
	// Size is the data in bytes; 0: 56, as in ping(8); negative: no data.
	Size    int    `json:"size,omitempty"`
	Pattern []byte `json:"pattern,omitempty"` // bytes repeated to fill the data
	TTL     int    `json:"ttl,omitempty"`     // TTL; 0: the node's default
	TOS     int    `json:"tos,omitempty"`
	// Source is an address of the node or the name of an interface; empty: the outgoing
	// interface's.
	Source string `json:"source,omitempty"`
	// Fragment selects who may fragment: "dont" or empty (every node), "do" (no node, to find the
	// path MTU), or "want" (only this node).
	Fragment string `json:"pmtudisc,omitempty"`
	// Timeout is how long to wait after the last request if nothing was answered; 0: 10 s.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Deadline ends the ping after this time, or at the first error; 0: no deadline.
	Deadline time.Duration `json:"deadline_ns,omitempty"`
	// Flood sends the next request as soon as the last is answered, or after 10 ms. Adaptive waits
	// for the answer, and at least 2 ms.
	Flood    bool `json:"flood,omitempty"`
	Adaptive bool `json:"adaptive,omitempty"`
	// Broadcast allows a broadcast address.
	Broadcast bool `json:"broadcast,omitempty"`
	// Outstanding calls Each for a request without a reply when the next is sent.
	Outstanding bool `json:"outstanding,omitempty"`
	// Begun, if set, is called when the parameters are valid and the first request is sent.
	Begun func() `json:"-"`
	// Each, if set, is called with every reply and every ICMP error.
	Each func(Reply) `json:"-"`
}

// Bytes returns the size of the data of each request.
func (p *Ping) Bytes() int {
	const usual = 56 // default of ping(8)
	if p.Size == 0 {
		return usual
	}
	return max(p.Size, 0)
}

// Reply is the answer to one echo request or traceroute probe.
type Reply struct {
	From netip.Addr    `json:"from"`
	Seq  int           `json:"seq"`
	TTL  int           `json:"ttl"`
	Size int           `json:"size"` // size of the ICMP message in bytes, with its header
	RTT  time.Duration `json:"rtt_ns"`
	At   time.Time     `json:"at,omitzero"`
	// Problem is empty for an echo reply, and for the "time exceeded" that a traceroute provokes.
	// Otherwise it is the error that From reported.
	Problem string `json:"problem,omitempty"`
	// Mark is the problem as a traceroute prints it: !H, !N, !F-576 and so on.
	Mark string `json:"mark,omitempty"`
	// Type, Code and MTU are fields of the ICMP message.
	Type uint8 `json:"icmp_type"`
	Code uint8 `json:"icmp_code"`
	MTU  int   `json:"mtu,omitempty"`
	// PathMTU is the path MTU up to this hop, as found by a traceroute; 0: unchanged.
	PathMTU int `json:"path_mtu,omitempty"`
	// Err is the error of a Local problem.
	Err error `json:"-"`
	// Local marks an error of this node: no packet was sent.
	Local bool `json:"local,omitempty"`
	// Late is set if no reply arrived before the next request was sent.
	Late bool `json:"late,omitempty"`
	// Duplicate is set for a second reply to the same request. Elsewhere is set for a reply from an
	// address that was not pinged. Damaged is set for a reply with a wrong checksum.
	Duplicate bool `json:"duplicate,omitempty"`
	Elsewhere bool `json:"elsewhere,omitempty"`
	Damaged   bool `json:"damaged,omitempty"`
	// Wrong is set if the received data differs from the sent data.
	Wrong *WrongData `json:"wrong,omitempty"`
}

// WrongData is the difference between the data of an echo reply and of its request.
type WrongData struct {
	At   int    `json:"at"`   // offset of the first wrong byte
	Want byte   `json:"want"` // expected value
	Data []byte `json:"data"` // the received data
}

// PingResult has the statistics of a Ping.
type PingResult = icmp.PingResult

// ProbeKind is a kind of traceroute probe.
type ProbeKind string

// These are the kinds of probes.
const (
	ProbeUDP  ProbeKind = "udp" // the default, like the empty string
	ProbeICMP ProbeKind = "icmp"
	ProbeTCP  ProbeKind = "tcp"
)

// Traceroute sends probes with increasing TTL until Addr answers.
type Traceroute struct {
	Answer[[]Hop]
	Addr     netip.Addr `json:"addr"`
	Kind     ProbeKind  `json:"kind,omitempty"`
	First    int        `json:"first,omitempty"` // first TTL; 0: 1
	MaxHops  int        `json:"max_hops"`        // largest TTL; 0: 30
	Queries  int        `json:"queries"`         // probes for each hop; 0: 3
	Parallel int        `json:"parallel"`        // unanswered probes at one time; 0: 16
	// Port is the first UDP port, which increases with each probe (0: 33434), the first sequence
	// number of an echo (0: 1), or the TCP port (0: 80).
	Port int `json:"port,omitempty"`
	Size int `json:"size,omitempty"` // packet size in bytes; 0: 60, or 80 for IPv6
	TOS  int `json:"tos,omitempty"`
	// DontFragment sets DF.
	DontFragment bool `json:"dont_fragment,omitempty"`
	// PathMTU finds the path MTU with probes of decreasing size, one at a time. It cannot be used
	// with TCP probes, which are empty.
	PathMTU bool `json:"path_mtu,omitempty"`
	// Source is as in Ping.
	Source string `json:"source,omitempty"`
	// Wait is how long to wait for a reply; 0: 5 s. If another reply from the same hop has arrived,
	// the wait is only Here times that round trip (0: 3). If a reply from a later hop has arrived,
	// it is Near times that round trip (0: 10). A negative Here or Near disables this.
	Wait time.Duration `json:"wait_ns,omitempty"`
	Here float64       `json:"here,omitempty"`
	Near float64       `json:"near,omitempty"`
	// Gap is the minimum time between probes; 0: 0.2 ms.
	Gap time.Duration `json:"gap_ns,omitempty"`
	// Each, if set, is called with every finished hop.
	Each func(Hop) `json:"-"`
}

// Hop has the replies to the probes with one TTL.
type Hop struct {
	TTL     int     `json:"ttl"`
	Replies []Reply `json:"replies"` // one reply for each probe; the zero From: no reply
}
