// Package ip is the Internet Protocol, version 4 (RFC 791, RFC 1122 §3,
// RFC 1812): the header codec, what forwarding does to a packet, the routing
// table, and the names of everything a packet can be dropped for.
//
// It is pure: it reads no clock, starts nothing, and holds no state but the
// Table's. Package stack wires it to the links and to the protocols above.
//
// A received packet passes ParseHeader (header.go); if it is for somebody else,
// Table.Lookup finds its way (route.go) and Forward takes one hop off it
// (forward.go). What ends on the way is counted under its DropReason (drop.go).
package ip
