// Package icmp is the Internet Control Message Protocol (RFC 792): the codec,
// what an error message quotes, and about which packets one may be sent at all
// (RFC 1122 §3.2.2).
//
// The package holds no state and starts nothing. It reads the few fields of an
// IP header that the rules need by itself, because package ip imports it.
package icmp
