package control

import "net/netip"

// DNS returns the node's DNS configuration and counters.
type DNS struct{ Answer[DNSState] }

// DNSConfig configures a node's resolver and its DNS server.
type DNSConfig struct {
	// Servers are the servers that the resolver queries, in this order.
	Servers []netip.Addr `json:"servers"`
	// Zone is the domain of the network's hosts, in which names without a dot are looked up; empty:
	// DefaultZone.
	Zone string `json:"zone"`
	// Names are the hosts of the zone that the node's server knows; empty: the node runs no server.
	Names []HostName `json:"names"`
}

// DefaultZone is the top-level domain that ICANN reserves for private networks.
const DefaultZone = "internal"

// HostName is a host of a zone. Its name is relative to the zone.
type HostName struct {
	Name  string       `json:"name"`
	Addrs []netip.Addr `json:"addrs"`
}

// SetDNS replaces the DNSConfig: it starts the server, changes its names, or stops it.
type SetDNS DNSConfig

func (SetDNS) answers(DNSState) {}

// DNSState is a DNSConfig with the counters of the server and of the resolver.
type DNSState struct {
	DNSConfig
	// Queries counts the queries to the server. Answers counts its answers by their response codes
	// (RFC 1035 §4.1.1). Dropped counts the messages that it does not answer.
	Queries uint64     `json:"queries"`
	Answers []DNSCount `json:"answers,omitempty"`
	Dropped uint64     `json:"dropped"`
	// Asked counts the queries of the resolver, including retransmissions. Ignored counts the
	// messages that do not answer a query, by reason (RFC 5452 §9.1).
	Asked   uint64     `json:"asked"`
	Ignored []DNSCount `json:"ignored,omitempty"`
}

// DNSCount counts messages with a response code, such as NXDOMAIN, or those ignored for a reason.
type DNSCount struct {
	What  string `json:"what"`
	Count uint64 `json:"count"`
}

// Resolve looks up the addresses of a name, or the names of an address, by the DNS.
type Resolve struct {
	Answer[Resolved]
	Name string `json:"name"`
	// Family is 4 or 6 to require addresses of that version of IP; 0: both.
	Family int `json:"family,omitempty"`
}

// Resolved is the result of a Resolve.
type Resolved struct {
	Name string `json:"name"` // name as the server spells it
	// Addrs are the addresses of a name, in the order in which to try them (RFC 6724 §6).
	Addrs []netip.Addr `json:"addrs,omitempty"`
	// Names are the names of an address.
	Names []string `json:"names,omitempty"`
}
