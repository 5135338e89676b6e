// Package fence is the experiment of founding document 000 in virtual time: an echo server,
// and a client that writes, counts what it sends and checks every byte that comes back, over
// the sliding-fence transport and, to compare with, over the very TCP that moves files.
//
// client.go is the document's client and server as they are on any stream, rcp.go puts them
// on RCP and tcp.go on TCP; burst.go is the thought experiment with 16 packets; world_test.go the
// document's network of three hosts, A, B and C, with a loss in each direction at B.
//
// Attach places a client and its server on hosts of any world. What the document counts is
// what the client sends until it has its whole echo, when it closes its socket and is gone.
package fence
