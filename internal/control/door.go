package control

import "net/netip"

// Publish opens a TCP port of this machine that leads to a virtual host: what connects there is
// connected to To through the network. Both ways are ended by themselves, as are those of To's
// program and its client, and a reset at one end is one at the other. Answer Door.
type Publish struct {
	// Port is this machine's; 0: one that is free.
	Port uint16 `json:"port"`
	// On is this machine's address; the zero Addr: 127.0.0.1, which is this machine's alone.
	On netip.Addr `json:"on,omitzero"`
	// To is the virtual host's address and port.
	To netip.AddrPort `json:"to"`
	// UDP has it be about datagrams: who sends to the port has a port of the node's, until he
	// and the host have been silent for two minutes.
	UDP bool `json:"udp,omitempty"`
}

func (Publish) answers(Door) {}

// Expose opens a virtual port that leads to a service of this machine, or of one that it reaches.
// Answer Door.
type Expose struct {
	// Port is the node's, at all its addresses.
	Port uint16 `json:"port"`
	// To is the service as HOST:PORT.
	To string `json:"to"`
	// UDP has it be about datagrams: see Publish.
	UDP bool `json:"udp,omitempty"`
}

func (Expose) answers(Door) {}

// Splice has every port of an address of the node's that nothing here listens on lead to the port
// of that number of this machine, TCP and UDP; where nobody listens there either, whoever asks is
// refused. One at a time. Answer Door.
type Splice struct {
	Addr netip.Addr `json:"addr"`
	// To is the machine; the zero Addr: 127.0.0.1.
	To netip.Addr `json:"to,omitzero"`
}

func (Splice) answers(Door) {}

// Doors asks for the doors between this machine and the virtual network; answer []Door, by number.
type Doors struct{}

func (Doors) answers([]Door) {}

// Door is a way between this machine and the virtual network.
type Door struct {
	ID      int      `json:"id"`
	Kind    DoorKind `json:"kind"`
	Network string   `json:"network"` // "tcp" or "udp"; both, of a splice: "tcp+udp"
	From    string   `json:"from"`    // where it listens
	To      string   `json:"to"`      // where it leads
	// Closing is set when it was closed and some of its connections go on.
	Closing bool `json:"closing,omitempty"`
	// Open are the connections, or flows of datagrams, under way, Opened all that have been,
	// Failed those of them that could not be led on or ended otherwise than in order.
	Open   int    `json:"open"`
	Opened uint64 `json:"opened"`
	Failed uint64 `json:"failed"`
	// In are the bytes into the virtual network, Out those out of it.
	In  uint64 `json:"bytes_in"`
	Out uint64 `json:"bytes_out"`
	// Problem is the last failure.
	Problem string `json:"problem,omitempty"`
}

// DoorKind is the way that a door leads.
type DoorKind string

// The kinds of doors.
const (
	DoorPublish DoorKind = "publish"
	DoorExpose  DoorKind = "expose"
	DoorSplice  DoorKind = "splice"
)

// CloseDoor closes a door: its ports are free at once. Connections go on until they end, unless
// Cut is set. Answer Nothing.
type CloseDoor struct {
	ID  int  `json:"id"`
	Cut bool `json:"cut,omitempty"`
}

func (CloseDoor) answers(Nothing) {}
