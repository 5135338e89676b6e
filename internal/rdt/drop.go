package rdt

// Drop is the reason why a packet, or its contents, was dropped.
type Drop uint8

// These are the reasons.
const (
	dropNone        Drop = iota
	DropLength           // the packet's length is invalid
	DropChecksum         // the checksum is wrong
	DropState            // the combination of flags is invalid
	DropKind             // the packet is meant for the other end
	DropRequest          // the list of a request is invalid
	DropOldAck           // the acknowledgment is older than one that was already processed
	DropWildAck          // the acknowledgment is of packets that were never sent
	DropRepeated         // the chunk is a duplicate
	DropOutside          // the packet is beyond the window
	DropStream           // the object was not requested
	DropFinished         // the object is already finished
	DropOffset           // the chunk is outside its object
	DropCompression      // the chunk cannot be decompressed, or is too long
	DropMemory           // the object exceeds the receiver's memory limit
	DropAckQueue         // the queue of acknowledgments is full, so the oldest is dropped
	DropClosed           // the flow has ended
	dropCount
)

var dropNames = [dropCount]string{
	DropLength: "length", DropChecksum: "checksum", DropState: "state", DropKind: "kind",
	DropRequest: "request", DropOldAck: "old-ack", DropWildAck: "wild-ack",
	DropRepeated: "repeated", DropOutside: "outside-window", DropStream: "stream",
	DropFinished: "finished", DropOffset: "offset", DropCompression: "compression",
	DropMemory: "memory", DropAckQueue: "ack-queue", DropClosed: "closed",
}

// String returns the reason's name.
func (d Drop) String() string {
	if d == dropNone || d >= dropCount {
		return "none"
	}
	return dropNames[d]
}

// Drops counts drops by reason.
type Drops [dropCount]uint64

// Total returns the sum over all reasons.
func (d Drops) Total() (n uint64) {
	for _, v := range d {
		n += v
	}
	return n
}
