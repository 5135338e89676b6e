package control

import (
	"net/netip"
	"time"
)

// SmallService is one of the servers with which networks have always been tried.
type SmallService string

// The services, and the ports that are theirs.
const (
	ServiceEcho    SmallService = "echo"    // RFC 862: what comes goes back; port 7
	ServiceDiscard SmallService = "discard" // RFC 863: what comes is forgotten; port 9
	ServiceChargen SmallService = "chargen" // RFC 864: letters, as many as anybody reads; port 19
)

// ServeSmall opens such a server on a port, by TCP and by UDP, until that socket is closed; answer
// Socket, which listens.
type ServeSmall struct {
	Service SmallService `json:"service"`
	Port    uint16       `json:"port,omitempty"` // 0: the service's own
}

func (ServeSmall) answers(Socket) {}

// Echo sends messages to an echo server and holds what comes back against them; answer EchoResult.
// When its context ends it answers with what there is.
type Echo struct {
	Addr netip.Addr `json:"addr"`
	Port uint16     `json:"port,omitempty"` // 0: 7
	UDP  bool       `json:"udp,omitempty"`
	// Count is how many messages are sent; 0: until the context ends.
	Count    int           `json:"count,omitempty"`
	Size     int           `json:"size,omitempty"`        // bytes of each; 0: 64
	Interval time.Duration `json:"interval_ns,omitempty"` // 0: 1 s
	// Timeout is how long an answer is waited for; 0: 2 s. By UDP the next message is sent then.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Each, if set, is called with each answer, and each that did not come.
	Each func(EchoReply) `json:"-"`
}

func (Echo) answers(EchoResult) {}

// EchoReply is what became of one message.
type EchoReply struct {
	From    netip.AddrPort `json:"from"`
	Seq     int            `json:"seq"`
	Size    int            `json:"size"`
	RTT     time.Duration  `json:"rtt_ns"`
	Problem string         `json:"problem,omitempty"` // empty: it came back as it was
}

// EchoResult is what an Echo comes to. Whoever connected had the connection's opening before.
type EchoResult struct {
	Peer     netip.AddrPort `json:"peer"`
	UDP      bool           `json:"udp"`
	Sent     int            `json:"sent"`
	Received int            `json:"received"` // as they were
	Wrong    int            `json:"wrong"`    // otherwise than they were
	Min      time.Duration  `json:"min_ns"`
	Avg      time.Duration  `json:"avg_ns"`
	Max      time.Duration  `json:"max_ns"`
}
