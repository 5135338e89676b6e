// Package capture records what crosses a node's links: a pcapng writer that
// Wireshark reads, and a decoder that says one packet in one line.
//
// Both take packets as they are on the wire, one IP packet at a time, trains
// already cut. The package is pure: it opens no file, reads no clock and starts
// nothing. Its owner brings the io.Writer, the time stamps and the calls.
package capture
