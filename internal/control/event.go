package control

import (
	"net/netip"
	"time"
)

// Event is something that a node tells unasked: one of the types of this file.
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

// Event is part of the interface of that name.
func (TestReceived) Event() string { return "test" }

// Accepted is a connection that a Listen took.
type Accepted struct {
	Listener int    `json:"listener"` // the listening socket's number
	Socket   Socket `json:"socket"`
}

// Event is part of the interface of that name.
func (Accepted) Event() string { return "accepted" }

// SocketClosed is a connection that ended otherwise than by our own Close: the peer sent its FIN,
// or it failed.
type SocketClosed struct {
	Socket Socket `json:"socket"`
	// Problem is empty when the peer has closed its side in order and what it sent can be read,
	// else why the connection failed.
	Problem string `json:"problem,omitempty"`
}

// Event is part of the interface of that name.
func (SocketClosed) Event() string { return "closed" }

// Datagram is what came to a UDP socket that a ListenUDP or SendUDP opened.
type Datagram struct {
	SID  int            `json:"sid"`
	From netip.AddrPort `json:"from"`
	Data []byte         `json:"data"`
}

// Event is part of the interface of that name.
func (Datagram) Event() string { return "datagram" }

// Undelivered is ICMP's report that a datagram of such a socket did not arrive.
type Undelivered struct {
	SID     int            `json:"sid"`
	To      netip.AddrPort `json:"to"`
	Problem string         `json:"problem"`
}

// Event is part of the interface of that name.
func (Undelivered) Event() string { return "undelivered" }

// Transferring is how far a file transfer is, a few times a second.
type Transferring struct {
	Path     string         `json:"path"`
	Sent     bool           `json:"sent"` // false: received
	SID      int            `json:"sid"`
	Peer     netip.AddrPort `json:"peer"`
	Progress Progress       `json:"progress"`
}

// Event is part of the interface of that name.
func (Transferring) Event() string { return "progress" }

// TransferEnded is a file transfer that has ended.
type TransferEnded struct {
	Transfer Transfer `json:"transfer"`
	Problem  string   `json:"problem,omitempty"` // empty: it succeeded
}

// Event is part of the interface of that name.
func (TransferEnded) Event() string { return "transfer" }

// Segment is one TCP segment sent or received on a socket that Verbose asked for.
type Segment struct {
	SID  int    `json:"sid"`
	Sent bool   `json:"sent"` // false: received
	Text string `json:"text"` // one line, as the capture's decoder writes it
}

// Event is part of the interface of that name.
func (Segment) Event() string { return "segment" }

// NeighborChanged is a neighbour that is gone, back, or somewhere else.
type NeighborChanged struct {
	Neighbor Neighbor      `json:"neighbor"`
	Was      NeighborState `json:"was"`
	For      time.Duration `json:"for_ns"` // how long it was that
	// First is set if it has never been heard before.
	First bool `json:"first,omitempty"`
	// From is the UDP address that its host name meant before, if that is what changed.
	From string `json:"from,omitempty"`
}

// Event is part of the interface of that name.
func (NeighborChanged) Event() string { return "neighbor" }

// LinkChanged is an interface that somebody took down, or up again.
type LinkChanged struct {
	Interface Interface `json:"interface"`
}

// Event is part of the interface of that name.
func (LinkChanged) Event() string { return "link" }

// Message is anything else that the operator should read: one line of text.
type Message struct {
	Text string `json:"text"`
}

// Event is part of the interface of that name.
func (Message) Event() string { return "message" }
