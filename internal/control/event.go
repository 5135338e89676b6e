package control

import (
	"net/netip"
	"time"
)

// Event is a notification from a node: one of the types of this file.
type Event interface {
	// Event names the kind of event, as a stream of events labels it.
	Event() string
}

// TestReceived is a test packet for this node.
type TestReceived struct {
	Src  netip.Addr `json:"src"`
	Dst  netip.Addr `json:"dst"`
	TTL  int        `json:"ttl"`
	Text string     `json:"text"`
}

// Event implements the interface Event.
func (TestReceived) Event() string { return "test" }

// Accepted is a connection that a Listen accepted.
type Accepted struct {
	Listener int    `json:"listener"` // the listening socket's number
	Socket   Socket `json:"socket"`
}

// Event implements the interface Event.
func (Accepted) Event() string { return "accepted" }

// SocketClosed is a connection that the peer closed with a FIN, or that failed.
type SocketClosed struct {
	Socket Socket `json:"socket"`
	// Problem is why the connection failed; empty if the peer closed its side with a FIN, and its
	// data can still be read.
	Problem string `json:"problem,omitempty"`
}

// Event implements the interface Event.
func (SocketClosed) Event() string { return "closed" }

// Datagram is a datagram received on a UDP socket of a ListenUDP or SendUDP.
type Datagram struct {
	SID  int            `json:"sid"`
	From netip.AddrPort `json:"from"`
	Data []byte         `json:"data"`
}

// Event implements the interface Event.
func (Datagram) Event() string { return "datagram" }

// Undelivered is an ICMP error about a datagram of a ListenUDP's or SendUDP's socket.
type Undelivered struct {
	SID     int            `json:"sid"`
	To      netip.AddrPort `json:"to"`
	Problem string         `json:"problem"`
}

// Event implements the interface Event.
func (Undelivered) Event() string { return "undelivered" }

// Transferring is the progress of a file transfer, a few times a second.
type Transferring struct {
	Path     string         `json:"path"`
	Sent     bool           `json:"sent"` // direction; false: received
	SID      int            `json:"sid"`
	Peer     netip.AddrPort `json:"peer"`
	Progress Progress       `json:"progress"`
}

// Event implements the interface Event.
func (Transferring) Event() string { return "progress" }

// TransferEnded is the end of a file transfer.
type TransferEnded struct {
	Transfer Transfer `json:"transfer"`
	Problem  string   `json:"problem,omitempty"` // why the transfer failed; empty: it succeeded
}

// Event implements the interface Event.
func (TransferEnded) Event() string { return "transfer" }

// Segment is one TCP segment sent or received on a socket that Verbose asked for.
type Segment struct {
	SID  int    `json:"sid"`
	Sent bool   `json:"sent"` // direction; false: received
	Text string `json:"text"` // line of text from the capture's decoder
}

// Event implements the interface Event.
func (Segment) Event() string { return "segment" }

// NeighborChanged is a change of a neighbor's state or UDP address.
type NeighborChanged struct {
	Neighbor Neighbor      `json:"neighbor"`
	Was      NeighborState `json:"was"`
	For      time.Duration `json:"for_ns"` // time in the previous state
	// First is set if the node has never heard this neighbor before.
	First bool `json:"first,omitempty"`
	// From is the previous UDP address of its host name, if that has changed.
	From string `json:"from,omitempty"`
}

// Event implements the interface Event.
func (NeighborChanged) Event() string { return "neighbor" }

// LinkChanged is an interface that was taken down or up.
type LinkChanged struct {
	Interface Interface `json:"interface"`
}

// Event implements the interface Event.
func (LinkChanged) Event() string { return "link" }

// Message is any other line of text for the operator.
type Message struct {
	Text string `json:"text"`
}

// Event implements the interface Event.
func (Message) Event() string { return "message" }
