package control

import "net/netip"

// NATs lists the NATs of the node's interfaces.
type NATs struct{ Answer[[]NAT] }

// MaxNATSessions limits the sessions of one NAT in an answer.
const MaxNATSessions = 2000

// NAT is the network address translation of an interface.
type NAT struct {
	Iface   string     `json:"iface"`
	Outside netip.Addr `json:"outside"`
	// Config are the arguments of `nat on IFACE`; empty: endpoint-independent, with the defaults.
	Config    string `json:"config"`
	Mapping   string `json:"mapping"`
	Filtering string `json:"filtering"`
	// Forwards are port forwards, such as "tcp 8080 10.0.0.2:80".
	Forwards []string `json:"forwards"`
	// Sessions are sorted by inside address and at most MaxNATSessions; Total counts all of them.
	Sessions    []NATSession `json:"sessions"`
	Total       int          `json:"total"`
	MaxSessions int          `json:"max_sessions"`
	MaxPerHost  int          `json:"max_per_host"`
	Mappings    int          `json:"mappings"`
	Created     uint64       `json:"created"`  // sessions created
	Expired     uint64       `json:"expired"`  // sessions that expired
	Evicted     uint64       `json:"evicted"`  // unconfirmed sessions removed to make room
	Refused     uint64       `json:"refused"`  // packets dropped because of a limit
	Filtered    uint64       `json:"filtered"` // packets from outside that the filtering dropped
	Out         uint64       `json:"out"`      // translated packets from inside
	In          uint64       `json:"in"`       // translated packets from outside
}

// NATSession is the traffic of an inside address and port with one remote address and port.
type NATSession struct {
	Protocol string `json:"protocol"` // "tcp", "udp" or "icmp"; the ports of "icmp" are identifiers
	Inside   string `json:"inside"`
	Outside  string `json:"outside"`
	Remote   string `json:"remote"`
	// State is "opening", "open", "closing", or "unconfirmed": opened from outside, without an
	// answer.
	State   string  `json:"state"`
	Forward bool    `json:"forward,omitempty"` // the session uses a port forward
	Left    float64 `json:"left"`              // seconds until the timeout
	Out     uint64  `json:"out"`               // packets from inside
	In      uint64  `json:"in"`                // packets from outside
}

// SetNAT changes the NAT of an interface.
type SetNAT struct {
	Answer[Nothing]
	Iface string `json:"iface"`
	// On gives the interface a NAT, or changes it, with the arguments Args of `nat on IFACE`. The
	// port forwards stay.
	On   bool     `json:"on,omitempty"`
	Args []string `json:"args,omitempty"`
	// Forward adds a port forward: "tcp" or "udp", a port, and the inside ADDR:PORT. The interface
	// must have a NAT.
	Forward []string `json:"forward,omitempty"`
	// Unforward removes a port forward: "tcp" or "udp", and a port. If On, Forward and Unforward
	// are all empty, SetNAT removes the NAT.
	Unforward []string `json:"unforward,omitempty"`
}

// ClearNAT removes all sessions.
type ClearNAT struct {
	Answer[NATCleared]
	Iface string `json:"iface,omitempty"` // name or number of the interface; empty: every interface
}

// NATCleared is the number of removed sessions.
type NATCleared struct {
	Sessions int `json:"sessions"`
}

// NATServe serves probes of NATs by STUN (RFC 5780) at two IPv4 addresses of the node, until one of
// its four sockets is closed.
type NATServe struct {
	Port uint16 `json:"port,omitempty"` // first of the two ports; 0: 3478
}

func (NATServe) answers(NATServed) {}

// NATServed are the endpoints of the server.
type NATServed struct {
	At []netip.AddrPort `json:"at"`
}

// NATProbe finds out how the NATs between this node and a NATServe behave.
type NATProbe struct {
	Server netip.AddrPort `json:"server"` // port 0: 3478
}

func (NATProbe) answers(NATProbed) {}

// NATProbed is the result of a NATProbe.
type NATProbed struct {
	Server  netip.AddrPort `json:"server"`
	Local   netip.AddrPort `json:"local"`
	Outside netip.AddrPort `json:"outside"` // source address that the server sees
	NAT     bool           `json:"nat"`     // the local and the outside address differ
	// Mapping and Filtering are empty if the server has only one address.
	Mapping   string `json:"mapping"`
	Filtering string `json:"filtering"`
}
