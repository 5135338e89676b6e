package control

import (
	"net/netip"
	"time"
)

// RCPOptions configures one end of RCP, the sliding-fence transport. The zero RCPOptions follows
// founding document 000, except for the Timeout.
type RCPOptions struct {
	// Width is the number of packets in the fence; 0: 32.
	Width int `json:"width,omitempty"`
	// Window uses only the contiguous part of an acknowledgment, like a classic window.
	Window bool `json:"window,omitempty"`
	// Timer retransmits a packet when its retransmission timer expires (RFC 6298), not every 10 ms.
	Timer bool `json:"timer,omitempty"`
	// Timeout is how long the peer may be silent before the connection fails; 0: 3 s.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
}

// RCPEcho opens an echo server for RCP on a UDP port.
type RCPEcho struct {
	Answer[RCPPort]
	Port    uint16     `json:"port"`
	Options RCPOptions `json:"options"`
}

// RCPPort is a UDP port of RCP.
type RCPPort struct {
	Local netip.AddrPort `json:"local"` // bound address; 0.0.0.0: every address
}

// RCPClose closes the RCP server or client on a UDP port, and its connections.
type RCPClose struct {
	Answer[Nothing]
	Port uint16 `json:"port"`
}

// RCPSockets lists the ports and connections of RCP.
type RCPSockets struct{ Answer[[]RCPSocket] }

// RCPSocket is a connection or a listener, with its counters.
type RCPSocket struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"` // peer's address; 0.0.0.0:0 for a listener
	State  string         `json:"state"`  // state: listening, connecting, open or lingering

	Unacked int           `json:"unacked"` // packets sent but not acknowledged
	Held    int           `json:"held"`    // packets in the fence that wait for a missing one
	Unsent  int           `json:"unsent"`  // bytes written but not yet in packets
	Unread  int           `json:"unread"`  // bytes received but not read
	SRTT    time.Duration `json:"srtt_ns"` // smoothed round-trip time; 0: no sample
	RCPCounts
}

// RCPCounts counts packets. A listener counts the packets of all its connections, including closed
// ones.
type RCPCounts struct {
	DAT      uint64 `json:"dat"`
	ACK      uint64 `json:"ack"`
	FIN      uint64 `json:"fin"`
	Again    uint64 `json:"again"` // retransmitted packets
	Received uint64 `json:"received"`
	Dropped  uint64 `json:"dropped"` // packets received but not accepted, such as duplicates
}

// Sent returns the number of sent packets.
func (c *RCPCounts) Sent() uint64 { return c.DAT + c.ACK + c.FIN }

// RCPCount runs the measuring client of founding document 000: it writes random pieces of 200 to
// 399 bytes with pauses of 2 to 19 ms to an echo server, and compares the echo with the data.
type RCPCount struct {
	Answer[RCPCounted]
	Addr    netip.Addr `json:"addr"`
	Port    uint16     `json:"port"`
	Writes  int        `json:"writes"` // number of writes; 0: 1000
	Options RCPOptions `json:"options"`
}

// RCPCounted is the time and the packets that it took to write everything and receive the echo.
type RCPCounted struct {
	Writes  int           `json:"writes"`
	Bytes   int64         `json:"bytes"`
	SHA256  string        `json:"sha256"` // SHA-256 of the data
	Seconds float64       `json:"seconds"`
	SRTT    time.Duration `json:"srtt_ns"`
	RCPCounts
}
