// Package ip is the Internet Protocol, version 4 (RFC 791, RFC 1122 §3,
// RFC 1812): the header codec, what forwarding does to a packet, the routing
// table, fragmentation and reassembly, and the names of everything a packet can be
// dropped for.
//
// It is pure: it reads no clock, starts nothing, and holds no state but the
// Table's and the Reassembler's. Package stack wires it to the links and to the protocols above.
//
// A received packet passes ParseHeader (header.go); if it is for somebody else,
// Table.Lookup finds its way (route.go) and Forward takes one hop off it
// (forward.go), or a Fragmenter cuts it where the next link is too narrow
// (fragment.go). If it is a fragment for this node, a Reassembler keeps it until
// its datagram is whole (reassembly.go; reassembly_datagram.go is what one is made of,
// reassembly_memory.go what all may take). What options a packet has is looked through
// in option.go. What ends on the way is counted under its DropReason (drop.go).
package ip
