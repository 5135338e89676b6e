// Package peer implements minimal nodes like those of other people. It uses UDP directly and builds
// every packet itself, so it shares no code and no errors with the node under test. Its TCP is that
// of a student project: windows of 65,535 bytes without scaling, no options, go-back-N with one
// timer, and an acknowledgment for each segment. Its Quirks were seen in other people's nodes. A
// peer serves one connection, in the caller's goroutine.
//
// wire.go builds and parses packets, host.go and send.go have the connection, quirks.go its
// deviations, and rip.go the course's routing protocol.
package peer
