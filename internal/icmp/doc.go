// Package icmp is the Internet Control Message Protocol for IPv4 (RFC 792) and IPv6 (RFC 4443): the
// codec, the quotation in an error message, the packets about which an error may be sent, and the
// rate limit. Ping and Trace (ping and traceroute) decide when to send which probe, and match
// answers with probes. Their owners build the probes' packets.
//
// Interface is the rest of ICMPv6 on one link: the neighbor cache (neighbor.go), the addresses of a
// host (address.go), router discovery and advertisements (router.go), and group membership
// (listener.go), which IGMP has as well. discovery.go is their codec. SelectSource and
// SortDestinations choose addresses (selection.go).
//
// The package is pure. Its only state is in Bucket, Ping, Trace, Interface and Listener. It reads
// the few fields of an IP header that the rules need.
package icmp
