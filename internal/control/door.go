package control

import "net/netip"

// Publish forwards a TCP port of this machine to a virtual host: a connection to the port is
// connected to To through the network. A half-close or a reset at one end is repeated at the other.
type Publish struct {
	Answer[Door]
	// Port is a port of this machine; 0: a free one.
	Port uint16 `json:"port"`
	// On is an address of this machine; the zero Addr: 127.0.0.1.
	On netip.Addr `json:"on,omitzero"`
	// To is the virtual host's address and port.
	To netip.AddrPort `json:"to"`
	// UDP forwards datagrams. Each sender gets a port of the node, until neither it nor the host
	// has sent for two minutes.
	UDP bool `json:"udp,omitempty"`
}

// Expose forwards a port of the node to a service on this machine, or on one that it can reach.
type Expose struct {
	Answer[Door]
	// Port is a port of the node, at all its addresses.
	Port uint16 `json:"port"`
	// To is the service as HOST:PORT.
	To string `json:"to"`
	// UDP forwards datagrams, as in Publish.
	UDP bool `json:"udp,omitempty"`
}

// Splice forwards every port of a node's address that has no listener to the same port of this
// machine, TCP and UDP. If that port is closed, the node refuses the client. A node has at most one
// splice.
type Splice struct {
	Answer[Door]
	Addr netip.Addr `json:"addr"`
	// To is the machine; the zero Addr: 127.0.0.1.
	To netip.Addr `json:"to,omitzero"`
}

// Socks makes a port of this machine a SOCKS5 and HTTP proxy into the virtual network: programs
// with a proxy setting connect as the node, and names are looked up by the node.
type Socks struct {
	Answer[Door]
	// Port is a port of this machine; 0: a free one.
	Port uint16 `json:"port"`
	// On is an address of this machine; the zero Addr: 127.0.0.1.
	On netip.Addr `json:"on,omitzero"`
	// User and Password are what clients must send; both empty: no authentication.
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
}

// Doors lists the port forwards between this machine and the virtual network, ordered by number.
type Doors struct{ Answer[[]Door] }

// Door is a port forward between this machine and the virtual network.
type Door struct {
	ID      int      `json:"id"`
	Kind    DoorKind `json:"kind"`
	Network string   `json:"network"` // "tcp" or "udp"; both, of a splice: "tcp+udp"
	From    string   `json:"from"`    // listening address
	To      string   `json:"to"`      // target address
	// Closing is set if it was closed and some of its connections are still open.
	Closing bool `json:"closing,omitempty"`
	// Open counts open connections, or flows of datagrams. Opened counts all of them so far, Failed
	// counts those that could not be forwarded or did not end in order.
	Open   int    `json:"open"`
	Opened uint64 `json:"opened"`
	Failed uint64 `json:"failed"`
	// In counts the bytes into the virtual network, and Out counts the bytes out of it.
	In  uint64 `json:"bytes_in"`
	Out uint64 `json:"bytes_out"`
	// Problem is the last failure.
	Problem string `json:"problem,omitempty"`
}

// DoorKind is the kind of a port forward.
type DoorKind string

// The kinds of port forwards.
const (
	DoorPublish DoorKind = "publish"
	DoorExpose  DoorKind = "expose"
	DoorSplice  DoorKind = "splice"
	DoorSocks   DoorKind = "socks"
	DoorGateway DoorKind = "gateway" // created by `node link`; forwards to every address
)

// CloseDoor closes a port forward and frees its ports at once. Connections stay open, unless Cut.
type CloseDoor struct {
	Answer[Nothing]
	ID  int  `json:"id"`
	Cut bool `json:"cut,omitempty"`
}
