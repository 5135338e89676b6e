//go:build linux

// Package end implements the measured processes: one end of a connection over any stack, or the
// node between two ends.
//
// A process takes a Spec as its argument and reports every event on standard output as a line of
// JSON (Report). It reads commands from standard input, one per line: "usage" reports the resources
// that it has used, "cpu" only the CPU time, "count" the bytes received, and "go" starts its work.
// The process ends when its standard input ends.
package end

import (
	"net/netip"
	"time"
)

// Spec describes a process.
type Spec struct {
	// Stack is a stack (tidepool, gvisor, gvisor-own, kernel), a ceiling (raw-plain, raw-mmsg,
	// raw-gso, plane), or the node between two ends (router, relay).
	Stack string
	// Sides are the links: one for an end, two for a router or relay.
	Sides []Side
	// Far is the other end's address.
	Far netip.Addr
	// MTU of the links; 0: 1400.
	MTU int
	// Congestion is the name of the algorithm; empty: the stack's default.
	Congestion string
	// Work is done by the active end; an end without work serves.
	Work Work
	// Loss is the probability with which a router or relay drops a packet in each direction, and
	// Delay how long a relay delays packets. Seed makes the losses reproducible.
	Loss  float64
	Delay time.Duration
	Seed  uint64
	// Profile is the file for a CPU profile, of the measured work or of a server's whole run.
	Profile string
}

// Side is one link of a process.
type Side struct {
	UDP, Peer netip.AddrPort // addresses of this machine: UDP is bound, Peer is the destination
	Addr      netip.Addr     // address in the network; the prefix is a /24 or a /64
	Neighbor  netip.Addr
}

// Kinds of work.
const (
	Bulk  = "bulk"  // sends for a while
	Ask   = "ask"   // sends 64 bytes and waits for a reply of 64, repeatedly
	Churn = "churn" // connects and closes, repeatedly
	Hold  = "hold"  // opens connections and holds them
	Used  = "used"  // like Hold, with a request and a reply on each connection
	Blast = "blast" // sends without a protocol
)

// Work describes the active end's work.
type Work struct {
	Kind string
	// Warm is the warm-up, in which nothing is counted; For is the time counted after it. Receivers
	// of a ceiling also use their Warm.
	Warm, For time.Duration
	// Grace is how long a bulk sender then waits until all data has arrived.
	Grace time.Duration
	// Count is the number of connections to hold, or the maximum to open.
	Count int
}

// The server's ports. Held connections are spread over several ports, because the client's ports
// limit the connections between two addresses and one server port.
const (
	bulkPort  = 8000
	askPort   = 8001
	churnPort = 8002
	usedPort  = 8003
	holdPort  = 8010
	holdPorts = 10
)

// Report is a line that a process prints.
type Report struct {
	// Event is ready, usage, cpu, count, window (a receiver's time is over), end (it has
	// everything), done (the work) or failed.
	Event string
	Error string `json:",omitempty"`
	// Bytes is the number of bytes transferred in Took, and CPU is the CPU time that the process
	// used for them. A ceiling's sender reports in Sent how many bytes it sent.
	Bytes, Sent int64         `json:",omitempty"`
	Took        time.Duration `json:",omitempty"`
	// Bad counts wrong bytes among those that the receiver checked.
	Bad int64 `json:",omitempty"`
	// Whole means that all bytes that the sender wrote have arrived.
	Whole bool `json:",omitempty"`
	// Count is the number of rounds or connections.
	Count int64 `json:",omitempty"`
	Usage
	Path
}

// Usage is the resources that a process has used so far.
type Usage struct {
	CPU        time.Duration `json:",omitempty"`
	User       time.Duration `json:",omitempty"` // CPU time outside the kernel
	Heap       int64         `json:",omitempty"` // bytes in use after a garbage collection
	Resident   int64         `json:",omitempty"` // resident bytes, as the kernel counts them
	Goroutines int           `json:",omitempty"`
	// Packets that the stack sent, and those that our stack's own queues dropped.
	Packets, Drops uint64 `json:",omitempty"`
}

// Path is what the sender's stack reports about the connection.
type Path struct {
	RTT             time.Duration `json:",omitempty"` // mean of the samples
	MSS             int           `json:",omitempty"`
	Retransmits     uint64        `json:",omitempty"`
	RTOs            uint64        `json:",omitempty"`
	TailProbes      uint64        `json:",omitempty"`
	LostRetransmits uint64        `json:",omitempty"`
	Spurious        uint64        `json:",omitempty"` // needless recoveries and duplicate data
}
