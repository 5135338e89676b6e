// Package peer is the other nodes of the family, as small as they can be: it speaks UDP directly
// and makes every packet by hand, so that it shares no line, and no mistake, with the node under
// test. Its TCP is what a term's project is: windows of 65,535 bytes without scaling, no options,
// go-back-N on one timer, an acknowledgment a segment; its Manners are what is known of other
// people's nodes. It serves one connection and runs in the goroutine of whoever calls it.
//
// wire.go makes and reads packets, host.go is the connection, manners.go how it differs, rip.go the
// course's routing protocol.
package peer
