package control

import (
	"net/netip"
	"time"
)

// SendTest sends one packet whose payload is Text; answer TestSent.
type SendTest struct {
	Addr  netip.Addr `json:"addr"`
	Proto uint8      `json:"proto"` // 0: the family's test protocol
	Text  string     `json:"text"`
}

func (SendTest) answers(TestSent) {}

// TestSent is the size of a test packet with its IP header.
type TestSent struct {
	Bytes int `json:"bytes"`
}

// Ping sends ICMP echo requests and waits for the replies (RFC 792); answer PingResult. When its
// context ends it answers with the statistics so far instead of an error.
type Ping struct {
	Addr netip.Addr `json:"addr"`
	// Count is how many requests are sent; 0: until the context ends. With a Deadline it is how
	// many replies are waited for.
	Count    int           `json:"count"`
	Interval time.Duration `json:"interval_ns"`       // 0: 1 s
	Preload  int           `json:"preload,omitempty"` // so many leave at once
	// Size is bytes of data behind the ICMP header; 0: 56, as ping(8) has it. Negative: none.
	Size    int    `json:"size,omitempty"`
	Pattern []byte `json:"pattern,omitempty"` // what fills them, again and again
	TTL     int    `json:"ttl,omitempty"`     // 0: the node's own
	TOS     int    `json:"tos,omitempty"`
	// Source is an address of the node's or the name of an interface; empty: that of the way out.
	Source string `json:"source,omitempty"`
	// Fragment says who may: "dont" (nobody is forbidden to, and the empty string), "do" (nobody
	// may: find the path's MTU), or "want" (this node alone).
	Fragment string `json:"pmtudisc,omitempty"`
	// Timeout is how long the first reply is waited for behind the last request; 0: 10 s.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Deadline ends it whatever has come, and so does an error then; 0: none.
	Deadline time.Duration `json:"deadline_ns,omitempty"`
	// Flood sends the next request as soon as the last is answered, and 100 a second otherwise;
	// Adaptive does the first alone, with 2 ms between requests at the least.
	Flood    bool `json:"flood,omitempty"`
	Adaptive bool `json:"adaptive,omitempty"`
	// Broadcast allows a broadcast address.
	Broadcast bool `json:"broadcast,omitempty"`
	// Outstanding has Each called for a request without a reply when the next is sent.
	Outstanding bool `json:"outstanding,omitempty"`
	// Begun, if set, is called when it turns out that there is something to wait for.
	Begun func() `json:"-"`
	// Each, if set, is called with every reply and every error report as it comes.
	Each func(Reply) `json:"-"`
}

func (Ping) answers(PingResult) {}

// Bytes are those of data in each request.
func (p *Ping) Bytes() int {
	const usual = 56 // ping(8)
	if p.Size == 0 {
		return usual
	}
	return max(p.Size, 0)
}

// Reply is what came back for one echo request or traceroute probe.
type Reply struct {
	From netip.Addr    `json:"from"`
	Seq  int           `json:"seq"`
	TTL  int           `json:"ttl"`
	Size int           `json:"size"` // bytes of ICMP, header and data
	RTT  time.Duration `json:"rtt_ns"`
	At   time.Time     `json:"at,omitzero"`
	// Problem is empty for an echo reply and for the time exceeded that a traceroute provokes,
	// else the error that From reported, in words.
	Problem string `json:"problem,omitempty"`
	// Mark is the problem as a traceroute prints it: !H, !N, !F-576 and so on.
	Mark string `json:"mark,omitempty"`
	// Type, Code and MTU are those of the ICMP message.
	Type uint8 `json:"icmp_type"`
	Code uint8 `json:"icmp_code"`
	MTU  int   `json:"mtu,omitempty"`
	// PathMTU is what a traceroute found the path's MTU up to here to be; 0: nothing new.
	PathMTU int `json:"path_mtu,omitempty"`
	// Err is the error of a Local problem.
	Err error `json:"-"`
	// Local is a problem that this node itself has: nothing was sent.
	Local bool `json:"local,omitempty"`
	// Late is no reply: the request has none yet, and the next is being sent.
	Late bool `json:"late,omitempty"`
	// Duplicate is another reply to the same request, Elsewhere one from an address that was not
	// asked, Damaged one with a wrong checksum.
	Duplicate bool `json:"duplicate,omitempty"`
	Elsewhere bool `json:"elsewhere,omitempty"`
	Damaged   bool `json:"damaged,omitempty"`
	// Wrong is set when the data that came back is not what was sent.
	Wrong *WrongData `json:"wrong,omitempty"`
}

// WrongData says where the data of an echo reply is not what was sent.
type WrongData struct {
	At   int    `json:"at"`   // the first wrong byte
	Want byte   `json:"want"` // what it should be
	Data []byte `json:"data"` // all that came
}

// PingResult is the statistics of a Ping.
type PingResult struct {
	Addr       netip.Addr    `json:"addr"`
	Sent       int           `json:"sent"`
	Received   int           `json:"received"`
	Duplicates int           `json:"duplicates"`
	Corrupted  int           `json:"corrupted"`
	Errors     int           `json:"errors"`
	Pipe       int           `json:"pipe"` // the most requests under way when one was answered
	Elapsed    time.Duration `json:"elapsed_ns"`
	Min        time.Duration `json:"min_ns"`
	Avg        time.Duration `json:"avg_ns"`
	Max        time.Duration `json:"max_ns"`
	Mdev       time.Duration `json:"mdev_ns"`
	EWMA       time.Duration `json:"ewma_ns"`
}

// ProbeKind is what a traceroute sends.
type ProbeKind string

// The kinds of probe.
const (
	ProbeUDP  ProbeKind = "udp" // and the empty string
	ProbeICMP ProbeKind = "icmp"
	ProbeTCP  ProbeKind = "tcp"
)

// Traceroute sends probes with a growing TTL until Addr answers; answer []Hop.
type Traceroute struct {
	Addr     netip.Addr `json:"addr"`
	Kind     ProbeKind  `json:"kind,omitempty"`
	First    int        `json:"first,omitempty"` // the TTL to begin with; 0: 1
	MaxHops  int        `json:"max_hops"`        // 0: 30
	Queries  int        `json:"queries"`         // probes a hop; 0: 3
	Parallel int        `json:"parallel"`        // probes under way at once; 0: 16
	// Port is the first UDP port, counted up with each probe (0: 33434), the first sequence
	// number of an echo (0: 1), or the TCP port (0: 80).
	Port int `json:"port,omitempty"`
	Size int `json:"size,omitempty"` // bytes of the whole packet; 0: 60
	TOS  int `json:"tos,omitempty"`
	// DontFragment sets DF.
	DontFragment bool `json:"dont_fragment,omitempty"`
	// PathMTU finds the MTU of the path: probes are as large as it takes, one after another. Not
	// of kind TCP, whose probes carry nothing.
	PathMTU bool `json:"path_mtu,omitempty"`
	// Source is as a Ping has it.
	Source string `json:"source,omitempty"`
	// Wait is how long a reply is waited for; 0: 5 s. It is less where one from the same hop
	// (Here times as long; 0: 3) or from a later one (Near times; 0: 10) is there already. A
	// negative Here or Near does without.
	Wait time.Duration `json:"wait_ns,omitempty"`
	Here float64       `json:"here,omitempty"`
	Near float64       `json:"near,omitempty"`
	// Gap is the least time between probes, so that none waits for another in a batch; 0: 0.2 ms.
	Gap time.Duration `json:"gap_ns,omitempty"`
	// Each, if set, is called with every hop as it is finished.
	Each func(Hop) `json:"-"`
}

func (Traceroute) answers([]Hop) {}

// Hop is one distance of a Traceroute.
type Hop struct {
	TTL     int     `json:"ttl"`
	Replies []Reply `json:"replies"` // one a probe; the zero From: nothing came back
}
