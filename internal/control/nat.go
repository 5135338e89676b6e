package control

import "net/netip"

// NATs asks for the NATs of the node's interfaces; answer []NAT.
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
	// Sessions are at most MaxNATSessions, sorted by inside address. Total is their whole number.
	Sessions    []NATSession `json:"sessions"`
	Total       int          `json:"total"`
	MaxSessions int          `json:"max_sessions"`
	MaxPerHost  int          `json:"max_per_host"`
	Mappings    int          `json:"mappings"`
	Created     uint64       `json:"created"`  // sessions
	Expired     uint64       `json:"expired"`  // sessions
	Evicted     uint64       `json:"evicted"`  // sessions from outside that were not answered
	Refused     uint64       `json:"refused"`  // packets, because of a limit
	Filtered    uint64       `json:"filtered"` // packets from outside
	Out         uint64       `json:"out"`      // translated packets from inside
	In          uint64       `json:"in"`       // translated packets from outside
}

// NATSession is the traffic of an inside address and port with one remote address and port.
type NATSession struct {
	Protocol string `json:"protocol"` // "tcp", "udp" or "icmp", whose ports are identifiers
	Inside   string `json:"inside"`
	Outside  string `json:"outside"`
	Remote   string `json:"remote"`
	// State is "open", "opening", "closing", or "unconfirmed": from outside, and not answered.
	State   string  `json:"state"`
	Forward bool    `json:"forward,omitempty"` // through a port forward
	Left    float64 `json:"left"`              // seconds until the timeout
	Out     uint64  `json:"out"`               // packets
	In      uint64  `json:"in"`                // packets
}

// SetNAT changes the NAT of an interface; answer Nothing.
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
	// Without On and Forward, the NAT is removed, or only the port forward to Unforward, "tcp" or
	// "udp" and a port.
	Unforward []string `json:"unforward,omitempty"`
}

// ClearNAT removes all sessions; answer NATCleared.
type ClearNAT struct {
	Answer[NATCleared]
	Iface string `json:"iface,omitempty"` // only of this interface
}

// NATCleared is how many sessions were removed.
type NATCleared struct {
	Sessions int `json:"sessions"`
}

// NATServe serves probes of NATs by STUN (RFC 5780) at two IPv4 addresses of the node, until one of
// its four sockets is closed; answer NATServed.
type NATServe struct {
	Port uint16 `json:"port,omitempty"` // and the next one; 0: 3478
}

func (NATServe) answers(NATServed) {}

// NATServed are the endpoints of the server.
type NATServed struct {
	At []netip.AddrPort `json:"at"`
}

// NATProbe finds out how the NATs between this node and a server of probes behave; answer
// NATProbed.
type NATProbe struct {
	Server netip.AddrPort `json:"server"` // port 0: 3478
}

func (NATProbe) answers(NATProbed) {}

// NATProbed is what a probe has found.
type NATProbed struct {
	Server  netip.AddrPort `json:"server"`
	Local   netip.AddrPort `json:"local"`
	Outside netip.AddrPort `json:"outside"` // as the server sees Local
	NAT     bool           `json:"nat"`     // the two differ
	// Mapping and Filtering are empty if the server has only one address.
	Mapping   string `json:"mapping"`
	Filtering string `json:"filtering"`
}
