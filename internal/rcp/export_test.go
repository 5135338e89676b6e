package rcp

// Expand is expand, for tests.
func Expand(ref uint64, seq uint32) uint64 { return expand(ref, seq) }

// Age advances a socket's two streams by n packets, as if these had been sent and read. The socket
// must have exchanged only the opening packets.
func Age(sender, receiver *Socket, n uint64) {
	sender.out.una, sender.out.nxt, sender.out.end = n, n, n
	receiver.in.next = n
}
