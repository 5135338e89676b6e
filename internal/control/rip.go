package control

import (
	"net/netip"
	"time"
)

// RIP returns the state of the routing protocol.
type RIP struct{ Answer[RIPInfo] }

// RIPInfo is the state of the routing protocol.
type RIPInfo struct {
	// Dialect is "rip", the course's, "rip2" or "ripng". Empty: the node does not run RIP, and all
	// other fields are empty.
	Dialect    string         `json:"dialect"`
	Timers     RIPTimers      `json:"timers"`
	NextUpdate time.Duration  `json:"next_update_ns"` // time until the next full update
	Interfaces []RIPInterface `json:"interfaces"`
	Neighbors  []RIPNeighbor  `json:"neighbors"`
	Routes     []RIPRoute     `json:"routes"`
	Messages   RIPMessages    `json:"messages"`
	Refused    []Drop         `json:"refused,omitempty"` // refused messages and entries, by reason
	// RIPng is the state of RIPng on a node that also runs another dialect.
	RIPng *RIPInfo `json:"ripng,omitempty"`
}

// RIPTimers are the current timer settings; 0: disabled.
type RIPTimers struct {
	Periodic   time.Duration `json:"periodic_ns"`
	Offset     time.Duration `json:"offset_ns"`
	Timeout    time.Duration `json:"timeout_ns"`
	Garbage    time.Duration `json:"garbage_ns"`
	TriggerMin time.Duration `json:"trigger_min_ns"`
	TriggerMax time.Duration `json:"trigger_max_ns"`
	HoldDown   time.Duration `json:"hold_down_ns"`
}

// RIPMessages counts the protocol's messages since the node started.
type RIPMessages struct {
	RequestsIn   uint64 `json:"requests_in"`
	ResponsesIn  uint64 `json:"responses_in"`
	EntriesIn    uint64 `json:"entries_in"`
	RequestsOut  uint64 `json:"requests_out"`
	ResponsesOut uint64 `json:"responses_out"`
	TriggeredOut uint64 `json:"triggered_out"` // triggered updates, which ResponsesOut includes
	EntriesOut   uint64 `json:"entries_out"`
	Expired      uint64 `json:"expired"` // routes that timed out
}

// RIPInterface is the state of the protocol on one interface.
type RIPInterface struct {
	Iface   string `json:"iface"`
	Up      bool   `json:"up"`
	Passive bool   `json:"passive"`
	Cost    int    `json:"cost"`
	Send    string `json:"send,omitempty"`    // RIPv2 send mode, as RFC 2453 names it
	Receive string `json:"receive,omitempty"` // RIPv2 receive mode
	Auth    string `json:"auth,omitempty"`    // algorithm of the signing key; empty: none
	In      uint64 `json:"in"`                // accepted messages
	Out     uint64 `json:"out"`               // responses sent
	Entries uint64 `json:"entries_out"`       // entries in the sent responses
}

// RIPNeighbor is a router that is configured, or that has sent a message.
type RIPNeighbor struct {
	Iface      string        `json:"iface"`
	Addr       netip.Addr    `json:"addr"`
	Configured bool          `json:"configured"`
	Silent     time.Duration `json:"silent_ns"` // time since the last message; negative: none
	Version    int           `json:"version"`   // version of last message; 0: course dialect
	Requests   uint64        `json:"requests"`
	Responses  uint64        `json:"responses"`
	Refused    uint64        `json:"refused"`
	Routes     int           `json:"routes"` // routes through this router
}

// RIPRoute is the protocol's route to one prefix.
type RIPRoute struct {
	Prefix  netip.Prefix  `json:"prefix"`
	Cost    int           `json:"cost"` // metric; 16: unreachable
	Tag     int           `json:"tag"`
	NextHop netip.Addr    `json:"next_hop"` // next hop; zero: directly connected, or unreachable
	From    netip.Addr    `json:"from"`     // router that announced the route; zero: this node
	Iface   string        `json:"iface"`    // interface of the route; empty: none
	Age     time.Duration `json:"age_ns"`   // time since the last refresh
	Left    time.Duration `json:"left_ns"`  // time until expiry or deletion; negative: never
	Changed time.Duration `json:"changed_ns"`
}

// RIPNews is an event of the routing protocol. It is sent only while verbose is on.
type RIPNews struct {
	Iface string `json:"iface,omitempty"`
	Text  string `json:"text"`
}

// Event implements the interface Event.
func (RIPNews) Event() string { return "rip" }
