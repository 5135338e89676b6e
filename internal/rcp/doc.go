// Package rcp is the sliding-fence transport of founding document 000: a byte stream
// over the datagrams of one UDP port, whose acknowledgments say of each packet in a
// fence whether it arrived, and whose sender repeats the rest.
//
// Every Tick of the send loop each socket sends one acknowledgment and what is
// outstanding within the fence; silence for Timeout ends it. So a loss costs nothing but
// the packet that was lost, nobody waits for a timer, and nobody minds congestion.
// Config.Window turns the fence into the classic window, which hears only what is
// contiguous, and Config.Timer has packets repeated when RFC 6298 would, not every Tick.
//
// packet.go is the codec, assembler.go turns packets into a stream, disassembler.go a
// stream into packets, timer.go says when one is due again, socket.go joins them,
// router.go finds the socket that a packet is for and opens them, loop.go is the send
// loop, verdict.go names what becomes of packets.
//
// The document leaves some things open, and some are different here. Sequence numbers
// are wider inside, so that the wire's may wrap. FIN ends the stream where it stands in
// it: the document's end closes its own direction as soon as one arrives, even early;
// here each direction has its own end. A socket that is done lingers, so that a lost last
// acknowledgment is given again. Only DAT opens a socket. A reader who is slow has what
// does not fit his buffer held in the fence, acknowledged in its place: so the sender
// stops by itself. What the document leaves out stays left out: there is no checksum
// but UDP's, and sequence numbers start at 0, so that whoever can forge a source address
// can speak for it, and have a listener send it ten rounds of acknowledgments.
package rcp
