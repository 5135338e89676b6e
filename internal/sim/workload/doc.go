// Package workload has the applications of the founding documents, for simulated hosts.
//
// Each file's name begins with its application: echo_*.go, notebook_*.go, objects_*.go. Attach
// functions place a client and its server on hosts of any world.
//
// # Echo: founding document 000
//
// An echo server, and a client that writes, counts its packets and checks every byte that comes
// back, over the sliding-fence transport (echo_rcp.go) and, for comparison, over TCP (echo_tcp.go).
// burst.go is the thought experiment with 16 packets. The document counts the client's packets
// until it has received its whole echo and closes its socket.
//
// # Notebook: founding document 002
//
// The senders and the receiver of a published notebook about congestion control, whose packets are
// JSON in UDP datagrams. A sender strategy (notebook_strategy.go) is Tahoe, or a fixed window with
// go-back-N. Some properties of its code determine the published numbers:
//
//   - An acknowledgment carries the receiver's record of the highest segment without a gap before
//     it, with the send time of that segment's first arrival. So after a hole is filled, the sender
//     does not measure a round trip. Segments below the highest are not acknowledged.
//   - A sender counts every acknowledgment of an unknown segment as a duplicate.
//   - Tahoe's window grows whenever a segment number is divisible by it: with each segment before
//     the first loss, and then nearly twice per round trip. TahoeConfig.Even follows the document's
//     text.
//   - Acknowledgments are longer than data.
//
// One thing differs from the document: a lost answer to a handshake does not stop the receiver,
// because the receiver also takes data as an answer.
//
// # Objects: founding document 003
//
// A server sends ten small and ten large objects, text made of random bytes, to a client, which
// compares every byte; the document compares MD5 digests. The transports are the reliable data
// transfer of internal/rdt (objects_rdt.go) and TCP (objects_tcp.go): over one connection with the
// objects in the document's order, over one connection with interleaved chunks, or over a
// connection for each. Time counts from the client's first packet to the last byte of the last
// object.
package workload
