package control

import (
	"net/netip"
	"time"
)

// RCPOptions is how RCP, the sliding-fence transport, behaves at one end. The zero RCPOptions is
// founding document 000's, but for the Timeout.
type RCPOptions struct {
	// Width is how many packets the fence holds; 0: 32.
	Width int `json:"width,omitempty"`
	// Window hears only what is contiguous of an acknowledgment, as the classic window does.
	Window bool `json:"window,omitempty"`
	// Timer repeats a packet when its retransmission timer has expired (RFC 6298), and not every
	// 10 ms.
	Timer bool `json:"timer,omitempty"`
	// Timeout is the silence that ends a connection; 0: 3 s.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
}

// RCPEcho opens an echo server for RCP on a UDP port; answer RCPPort.
type RCPEcho struct {
	Port    uint16     `json:"port"`
	Options RCPOptions `json:"options"`
}

func (RCPEcho) answers(RCPPort) {}

// RCPPort is a UDP port with a router of RCP.
type RCPPort struct {
	Local netip.AddrPort `json:"local"` // 0.0.0.0 when it takes every address
}

// RCPClose ends whatever RCP has on a UDP port, and frees it; answer Nothing.
type RCPClose struct {
	Port uint16 `json:"port"`
}

func (RCPClose) answers(Nothing) {}

// RCPSockets asks for every port of RCP and the connections there; answer []RCPSocket.
type RCPSockets struct{}

func (RCPSockets) answers([]RCPSocket) {}

// RCPSocket is a connection, or a port that listens, with what was counted since it is open.
type RCPSocket struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"` // 0.0.0.0:0 of a port that listens
	State  string         `json:"state"`  // listening, connecting, open or lingering

	Unacked int           `json:"unacked"` // packets that were sent and are not acknowledged
	Held    int           `json:"held"`    // packets that wait in the fence for one before them
	Unsent  int           `json:"unsent"`  // bytes that wait to be cut into packets
	Unread  int           `json:"unread"`  // bytes that wait to be read
	SRTT    time.Duration `json:"srtt_ns"` // 0: there was no sample
	RCPCounts
}

// RCPCounts are packets. Of a port that listens they are those of all of its connections, also of
// those that are over.
type RCPCounts struct {
	DAT      uint64 `json:"dat"`
	ACK      uint64 `json:"ack"`
	FIN      uint64 `json:"fin"`
	Again    uint64 `json:"again"` // of them repeats
	Received uint64 `json:"received"`
	Dropped  uint64 `json:"dropped"` // received, and not accepted: a duplicate, say
}

// Sent is how many packets left in all.
func (c *RCPCounts) Sent() uint64 { return c.DAT + c.ACK + c.FIN }

// RCPCount is the counting client of founding document 000: it writes random pieces of 200 to 399
// bytes with rests of 2 to 19 ms to an echo server, and holds each byte that comes back against
// the one that left. Answer RCPCounted.
type RCPCount struct {
	Addr    netip.Addr `json:"addr"`
	Port    uint16     `json:"port"`
	Writes  int        `json:"writes"` // 0: 1000
	Options RCPOptions `json:"options"`
}

func (RCPCount) answers(RCPCounted) {}

// RCPCounted is what it took this end to write everything and have it back.
type RCPCounted struct {
	Writes  int           `json:"writes"`
	Bytes   int64         `json:"bytes"`
	SHA256  string        `json:"sha256"` // of what was sent, and came back
	Seconds float64       `json:"seconds"`
	SRTT    time.Duration `json:"srtt_ns"`
	RCPCounts
}
