package rcp

// Expand is expand, for tests.
func Expand(ref uint64, seq uint32) uint64 { return expand(ref, seq) }

// Age has a socket's two streams stand n packets further on, as if they had been sent and
// read. It is for a socket that has sent and received nothing but what opened it.
func Age(sender, receiver *Socket, n uint64) {
	sender.out.una, sender.out.nxt, sender.out.end = n, n, n
	receiver.in.next = n
}
