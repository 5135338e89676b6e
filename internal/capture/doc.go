// Package capture records what crosses a node's links: a pcapng writer that
// Wireshark reads, and a decoder that prints one packet per line.
//
// Both take packets as they are on the wire, one IP packet at a time, with
// segment trains already split. The package is pure: it opens no file, reads no
// clock and starts no goroutine. The caller supplies the io.Writer and the times.
package capture
