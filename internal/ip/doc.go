// Package ip is the Internet Protocol, version 4 (RFC 791, RFC 1122 §3, RFC 1812) and version 6
// (RFC 8200): the header codec, forwarding, the routing table, fragmentation and reassembly, and
// the reasons of drops.
//
// It is pure: its state is in types such as Table and Reassembler. Package stack connects it to the
// links and to the protocols above.
//
// A received packet passes ParseHeader (header.go). If it is for another host, Table.Lookup finds
// its route (route.go) and DecrementTTL updates its header (forward.go), or a Fragmenter splits it
// if the next link's MTU is too small (fragment.go). A fragment for this node waits in a
// Reassembler until its datagram is complete (reassembly.go; reassembly_datagram.go is one
// datagram, reassembly_memory.go the limits of all). option.go parses the options of IPv4,
// extension.go the extension headers of IPv6. append.go writes headers. Dropped packets are
// counted by DropReason (drop.go).
package ip
