package rcp

// Verdict is the result of processing a packet.
type Verdict uint8

// These are the verdicts. Counts.Dropped counts all except Accepted.
const (
	// Accepted means that the packet is new, or possibly new.
	Accepted Verdict = iota
	// ShortHeader means that the packet is shorter than a header.
	ShortHeader
	// UnknownType means that the packet is not a DAT, ACK or FIN.
	UnknownType
	// BadBitmap means that the bitmap of an ACK is empty, too long, or not whole words.
	BadBitmap
	// TrailingBytes means that a FIN has bytes after its header.
	TrailingBytes
	// LongData means that a DAT has more than MaxPayload bytes.
	LongData
	// NoSession means that the peer has no socket, and the packet does not open one.
	NoSession
	// NotListening means that the packet would open a socket, but the router does not listen.
	NotListening
	// BacklogFull means that the packet would open a socket, but the backlog is full.
	BacklogFull
	// TooManySessions means that the packet would open a socket, but the router has too many.
	TooManySessions
	// Duplicate means that the DAT or FIN was already received.
	Duplicate
	// OutsideFence means that the DAT or FIN is beyond the fence.
	OutsideFence
	// BehindFIN means that a DAT or FIN follows a FIN, or that a FIN precedes a DAT.
	BehindFIN
	// OldACK means that the ACK is older than one that was already processed.
	OldACK
	// UnsentACK means that the ACK acknowledges packets that were never sent.
	UnsentACK

	numVerdicts
)

var verdictNames = [numVerdicts]string{
	"accepted", "short header", "unknown type", "bad bitmap", "trailing bytes", "long data",
	"no session", "not listening", "backlog full", "too many sessions", "duplicate",
	"outside fence", "behind FIN", "old ACK", "unsent ACK",
}

// String returns the verdict's name.
func (v Verdict) String() string {
	if v < numVerdicts {
		return verdictNames[v]
	}
	return "unknown verdict"
}
