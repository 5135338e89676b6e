// Package capture records the packets on a node's links: a pcapng writer for Wireshark, and a
// decoder that prints one packet per line. Both take packets as they are on the link, one IP packet
// at a time, with segment trains already split. The package does no I/O by itself: it opens no
// file, reads no clock and starts no goroutine. The caller supplies the io.Writer and the times.
package capture
