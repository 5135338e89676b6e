// Package icmp is the Internet Control Message Protocol (RFC 792): the codec, the quotation in an
// error message, the packets about which an error may be sent (RFC 1122 §3.2.2), and the rate
// limit. Ping and Trace (ping and traceroute) decide when to send which probe, and match answers
// with probes. Their owners build the probes' packets and parse the answers.
//
// The package is pure. Its only state is in Bucket and the probes. It reads the few fields of an IP
// header that the rules need, because package ip imports it.
package icmp
