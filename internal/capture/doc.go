// Package capture records and shows the packets on a node's links: a writer and a reader of pcapng,
// filters, a decoder that prints one packet per line, and a Follower of TCP connections. All take
// packets as they are on the link, with segment trains already split. The package opens no file,
// reads no clock and starts no goroutine. The caller supplies the io.Writer and the times.
package capture
