// Package notebook is the senders and the receiver of founding document 002 as it published
// them: a notebook about congestion control, whose packets are JSON in UDP datagrams.
//
// A sender strategy is one small file behind one small interface, as in the document:
// fixed.go is its fixed window, which goes back by a window of packets, and tahoe.go its
// Tahoe. strategy.go is the interface and the ledger that each keeps; sender.go runs one on a
// UDP socket, as the document's polling loop does; receiver.go is the other end; wire.go makes
// and reads the JSON; world_test.go is the document's path.
//
// As published means with everything that is odd about it, for the published numbers come of
// that. The receiver acknowledges by the stored record of the highest segment without a gap
// before it, so that the send time that comes back is that of its first arrival, and what a
// sender measures after a hole was mended is no round trip. It says nothing to what is below
// the highest. A sender takes for a duplicate whatever it has no segment for. Tahoe's window
// grows whenever a number is divisible by it, which is each time as long as nothing is lost,
// and about twice a round trip later: TahoeConfig.Even has it as the document's text says.
// Acknowledgments are longer than data.
//
// What is not the document's: the lost answer to a handshake does not leave the receiver deaf,
// for data is an answer, too.
package notebook
