// Package peer implements minimal nodes like those that others have written. It uses UDP directly
// and builds every packet itself, so that it shares no code, and no error, with the node under
// test. Its TCP is that of a student project: windows of 65,535 bytes without scaling, no options,
// go-back-N with one timer, an acknowledgment for each segment. Its Quirks are those seen in other
// people's nodes. It serves one connection, in the caller's goroutine.
//
// wire.go builds and parses packets, host.go is the connection, quirks.go how it differs, rip.go
// the course's routing protocol.
package peer
