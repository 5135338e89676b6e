// Package workload has the applications of the founding documents, for the hosts of a simulation.
//
// Each file's name begins with its application: echo_*.go, notebook_*.go, objects_*.go. Attach
// functions place a client and its server on hosts of any world.
//
// # Echo: founding document 000
//
// An echo server, and a client that writes, counts what it sends and checks every byte that comes
// back, over the sliding-fence transport (echo_rcp.go) and, to compare with, over TCP
// (echo_tcp.go). burst.go is the thought experiment with 16 packets. What the document counts is
// what the client sends until it has its whole echo, when it closes its socket and is gone.
//
// # Notebook: founding document 002
//
// The senders and the receiver of a notebook about congestion control, whose packets are JSON in
// UDP datagrams, as it published them. A sender strategy (notebook_strategy.go) is a fixed window,
// which goes back by a window of packets, or Tahoe. The published numbers come of what is odd about
// it:
//
//   - The receiver acknowledges by the stored record of the highest segment without a gap before
//     it, so that the send time that comes back is that of its first arrival, and what a sender
//     measures after a hole was filled is no round trip. It does not answer what is below the
//     highest.
//   - A sender takes for a duplicate whatever it has no segment for.
//   - Tahoe's window grows whenever a number is divisible by it, which is each time as long as
//     nothing is lost, and about twice a round trip later: TahoeConfig.Even has it as the
//     document's text says.
//   - Acknowledgments are longer than data.
//
// What is not the document's: the lost answer to a handshake does not leave the receiver deaf,
// because data is an answer, too.
//
// # Objects: founding document 003
//
// Ten small objects and ten large ones, text made of random bytes, go from a server to a client,
// which compares every byte, where the document compares MD5 digests: by the reliable data transfer
// of internal/rdt (objects_rdt.go), and by TCP (objects_tcp.go) over one connection with the
// objects in the document's order, over one connection on which their chunks take turns, or over a
// connection for each. Time counts from the client's first packet to the last byte of the last
// object.
package workload
