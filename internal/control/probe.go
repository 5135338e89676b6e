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
	Addr     netip.Addr    `json:"addr"`
	Count    int           `json:"count"`       // 0: until the context ends
	Interval time.Duration `json:"interval_ns"` // 0: 1 s
	Size     int           `json:"size"`        // bytes of data behind the ICMP header
	// Each, if set, is called with every reply and every error report as it comes.
	Each func(Reply) `json:"-"`
}

func (Ping) answers(PingResult) {}

// Reply is what came back for one echo request or traceroute probe.
type Reply struct {
	From netip.Addr    `json:"from"`
	Seq  int           `json:"seq"`
	TTL  int           `json:"ttl"`
	Size int           `json:"size"` // bytes of ICMP, header and data
	RTT  time.Duration `json:"rtt_ns"`
	// Problem is empty for an echo reply and for the time exceeded that a traceroute provokes,
	// else the error that From reported, in words.
	Problem string `json:"problem,omitempty"`
}

// PingResult is the statistics of a Ping.
type PingResult struct {
	Addr     netip.Addr    `json:"addr"`
	Sent     int           `json:"sent"`
	Received int           `json:"received"`
	Errors   int           `json:"errors"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	Min      time.Duration `json:"min_ns"`
	Avg      time.Duration `json:"avg_ns"`
	Max      time.Duration `json:"max_ns"`
	Mdev     time.Duration `json:"mdev_ns"`
}

// Traceroute sends echo requests with a growing TTL until Addr answers; answer []Hop.
type Traceroute struct {
	Addr    netip.Addr `json:"addr"`
	MaxHops int        `json:"max_hops"` // 0: 30
	Queries int        `json:"queries"`  // probes a hop; 0: 3
	// Each, if set, is called with every hop as it is finished.
	Each func(Hop) `json:"-"`
}

func (Traceroute) answers([]Hop) {}

// Hop is one distance of a Traceroute.
type Hop struct {
	TTL     int     `json:"ttl"`
	Replies []Reply `json:"replies"` // one a probe; the zero From: nothing came back
}
