package control

import (
	"net/netip"
	"time"
)

// SmallService is a simple test service.
type SmallService string

// These are the services and their ports.
const (
	ServiceEcho    SmallService = "echo"    // RFC 862: returns what it receives; port 7
	ServiceDiscard SmallService = "discard" // RFC 863: discards what it receives; port 9
	ServiceChargen SmallService = "chargen" // RFC 864: sends characters without end; port 19
)

// ServeSmall runs a small server on a TCP and a UDP port until its listening socket is closed.
type ServeSmall struct {
	Answer[Socket]
	Service SmallService `json:"service"`
	Port    uint16       `json:"port,omitempty"` // listening port; 0: the service's own port
}

// Echo sends messages to an echo server and compares the answers. When its context ends, it returns
// the result so far.
type Echo struct {
	Answer[EchoResult]
	Addr netip.Addr `json:"addr"`
	Port uint16     `json:"port,omitempty"` // server's port; 0: 7
	UDP  bool       `json:"udp,omitempty"`
	// Count is the number of messages; 0: send until the context ends.
	Count    int           `json:"count,omitempty"`
	Size     int           `json:"size,omitempty"`        // size of each message in bytes; 0: 64
	Interval time.Duration `json:"interval_ns,omitempty"` // interval between messages; 0: 1 s
	// Timeout is how long to wait for an answer; 0: 2 s. UDP clients then send the next one.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Each, if set, is called with each answer, and for each missing one.
	Each func(EchoReply) `json:"-"`
}

// EchoReply is the result of one message.
type EchoReply struct {
	From    netip.AddrPort `json:"from"`
	Seq     int            `json:"seq"`
	Size    int            `json:"size"`
	RTT     time.Duration  `json:"rtt_ns"`
	Problem string         `json:"problem,omitempty"` // what was wrong; empty: nothing
}

// EchoResult is the result of an Echo.
type EchoResult struct {
	Peer     netip.AddrPort `json:"peer"`
	UDP      bool           `json:"udp"`
	Sent     int            `json:"sent"`
	Received int            `json:"received"` // messages that returned unchanged
	Wrong    int            `json:"wrong"`    // messages that returned changed
	Min      time.Duration  `json:"min_ns"`
	Avg      time.Duration  `json:"avg_ns"`
	Max      time.Duration  `json:"max_ns"`
}
