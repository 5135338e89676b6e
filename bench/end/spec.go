//go:build linux

// Package end is what runs in the processes that are measured: one end of a connection, whatever
// stack it is made by, or what stands between two ends.
//
// A process gets a Spec as its argument, says a line of JSON on standard output for everything that
// happens (Said), and does what standard input asks, a word a line: "usage" has it say what it has
// used, "cpu" the same without a look at its memory, "count" what it has received, and "go" has it
// do its work. It ends when standard input does.
package end

import (
	"net/netip"
	"time"
)

// Spec says what a process is.
type Spec struct {
	// Stack is one of the stacks (tidepool, gvisor, gvisor-own, kernel), a ceiling (raw-plain,
	// raw-mmsg, raw-gso, plane), or what is in between (router, relay).
	Stack string
	// Sides are the links: one of an end, two of what is in between.
	Sides []Side
	// Far is the other end's address.
	Far netip.Addr
	// MTU of the links; 0: 1400.
	MTU int
	// Congestion is the algorithm's name; empty: the stack's own choice.
	Congestion string
	// Work is what the active end does; an end without any serves.
	Work Work
	// Loss is the share of the packets of each direction that what is in between drops, and
	// Delay how long it holds each back. Seed makes the luck repeat itself.
	Loss  float64
	Delay time.Duration
	Seed  uint64
	// Profile is a file for a CPU profile of the work, or of all that a server does.
	Profile string
}

// Side is one side of a process.
type Side struct {
	UDP, Peer netip.AddrPort // of this machine: bound, and sent to
	Addr      netip.Addr     // within the network; its prefix is a /24
	Neighbor  netip.Addr
}

// Kinds of work.
const (
	Bulk  = "bulk"  // sends for a while
	Ask   = "ask"   // sends 64 bytes and waits for as many, again and again
	Churn = "churn" // connects and closes
	Hold  = "hold"  // connects and keeps
	Used  = "used"  // the same, with a request and a reply on each connection
	Blast = "blast" // sends without a protocol
)

// Work is what the active end does.
type Work struct {
	Kind string
	// Warm is how long nothing is counted, and For how long it is counted then. A ceiling's
	// receiver has its Warm here, too.
	Warm, For time.Duration
	// Grace is how long a bulk sender waits afterwards for all to have arrived.
	Grace time.Duration
	// Count is how many connections are held, or opened at the most.
	Count int
}

// The ports that a server listens at. Held connections are spread over several, for between two
// addresses and one port there are no more than the client has ports of its own.
const (
	bulkPort  = 8000
	askPort   = 8001
	churnPort = 8002
	usedPort  = 8003
	holdPort  = 8010
	holdPorts = 10
)

// Said is a line that a process says.
type Said struct {
	// Event is ready, usage, count, window (of a receiver: its time is over), end (it has all),
	// done (the work) or failed.
	Event string
	Error string `json:",omitempty"`
	// Bytes were moved in Took, within which the process used CPU; in ceilings, Sent of them.
	Bytes, Sent int64         `json:",omitempty"`
	Took        time.Duration `json:",omitempty"`
	// Bad counts bytes that were not what was sent, as far as one has looked.
	Bad int64 `json:",omitempty"`
	// Whole says of a sender that everything it wrote has arrived.
	Whole bool `json:",omitempty"`
	// Count is how many rounds, or connections.
	Count int64 `json:",omitempty"`
	Usage
	Path
}

// Usage is what a process has used until now.
type Usage struct {
	CPU        time.Duration `json:",omitempty"`
	User       time.Duration `json:",omitempty"` // of CPU, what was not the kernel's
	Heap       int64         `json:",omitempty"` // bytes in use, garbage collected
	Resident   int64         `json:",omitempty"` // bytes, as the kernel counts
	Goroutines int           `json:",omitempty"`
	// Packets that a stack of ours sent, and those that its own queues dropped.
	Packets, Drops uint64 `json:",omitempty"`
}

// Path is what a sender says of its connection, as far as its stack tells.
type Path struct {
	RTT             time.Duration `json:",omitempty"` // the mean of those that were looked at
	MSS             int           `json:",omitempty"`
	Retransmits     uint64        `json:",omitempty"`
	RTOs            uint64        `json:",omitempty"`
	TailProbes      uint64        `json:",omitempty"`
	LostRetransmits uint64        `json:",omitempty"`
	Spurious        uint64        `json:",omitempty"` // needless recoveries, and what came twice
}
