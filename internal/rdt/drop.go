package rdt

// Drop is why a packet, or what was in it, ended here.
type Drop uint8

// The reasons.
const (
	dropNone     Drop = iota
	DropLength        // no packet has this length
	DropChecksum      // the checksum says that it was changed on the way
	DropState         // it claims to be what nothing can be
	DropKind          // it is for the other end
	DropRequest       // a request that lists nothing, too much, or half a number
	DropOldAck        // the acknowledgment was overtaken by a later one
	DropWildAck       // it acknowledges what was never sent
	DropRepeated      // the chunk is here already
	DropOutside       // its sequence number is beyond the window
	DropStream        // nobody asked for this object
	DropFinished      // the object has ended, in success or in error
	DropOffset        // the chunk lies where none of its object can
	DropSqueezed      // it does not decompress, or to too much
	DropMemory        // the object is more than the receiver may hold
	DropAckQueue      // the oldest of too many acknowledgments that nobody fetched
	DropClosed        // the flow is over
	dropCount
)

var dropNames = [dropCount]string{
	DropLength: "length", DropChecksum: "checksum", DropState: "state", DropKind: "kind",
	DropRequest: "request", DropOldAck: "old-ack", DropWildAck: "wild-ack",
	DropRepeated: "repeated", DropOutside: "outside-window", DropStream: "stream",
	DropFinished: "finished", DropOffset: "offset", DropSqueezed: "compression",
	DropMemory: "memory", DropAckQueue: "ack-queue", DropClosed: "closed",
}

// String returns the reason's name.
func (d Drop) String() string {
	if d == dropNone || d >= dropCount {
		return "none"
	}
	return dropNames[d]
}

// Drops counts what ended, by reason.
type Drops [dropCount]uint64

// Total returns the sum over all reasons.
func (d Drops) Total() (n uint64) {
	for _, v := range d {
		n += v
	}
	return n
}
