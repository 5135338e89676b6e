// Package icmp is the Internet Control Message Protocol (RFC 792): the codec,
// what an error message quotes, about which packets one may be sent at all (RFC 1122
// §3.2.2), and how many. Ping and Trace (ping and traceroute) decide when to send which probe, and
// match answers with probes; their owners render the probes and take the answers apart.
//
// The package starts nothing, and holds no state but a Bucket's and the probes'. It reads the few
// fields of an IP header that the rules need by itself, because package ip imports it.
package icmp
