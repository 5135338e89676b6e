// Package rcp is the sliding-fence transport of founding document 000: a byte stream over the
// datagrams of one UDP port. An acknowledgment reports which packets in a window, the fence, have
// arrived. The sender repeats the others.
//
// In every Tick of the send loop each socket sends one acknowledgment, and the unacknowledged
// packets in the fence. Silence for Timeout ends the socket. A loss delays only the lost packet,
// and neither end waits for a timer, but there is no congestion control. Config.Window turns the
// fence into a classic window, which uses only the contiguous part of acknowledgments. Config.Timer
// repeats packets as RFC 6298 does, and not every Tick.
//
// packet.go is the codec. assembler.go converts packets to a stream, and disassembler.go a stream
// to packets. timer.go is the retransmission timer. socket.go connects these parts, and router.go
// finds or opens the socket for a packet. loop.go is the send loop. verdict.go names the results of
// received packets.
//
// The document leaves some points open, and this package differs in others. Sequence numbers have
// 64 bits internally, so the 32-bit numbers in packets may wrap. A FIN ends its direction at its
// position in the stream; in the document an end closes its own direction when a FIN arrives, even
// out of order. A finished socket lingers, so that it can repeat a lost last acknowledgment. Only a
// DAT opens a socket. If the reader is slow, packets that do not fit in its buffer wait in the
// fence and are acknowledged there, so the sender stops. As in the document, there is no checksum
// except UDP's, and sequence numbers start at 0. An attacker who can forge a source address can
// therefore send in the peer's name, and make a listener send ten rounds of acknowledgments to that
// address. At Config.MaxSessions, sockets whose peer has sent only one packet make room for others.
package rcp
