package rcp

// Verdict is the result of processing a packet.
type Verdict uint8

// The verdicts. All but Accepted are counted in Info.Dropped.
const (
	// Accepted: the packet is new, or possibly new.
	Accepted Verdict = iota
	// ShortHeader: the packet is shorter than a header.
	ShortHeader
	// UnknownType: the packet is no DAT, ACK or FIN.
	UnknownType
	// BadBitmap: an ACK whose bitmap is empty, too long or not whole words.
	BadBitmap
	// TrailingBytes: a FIN with bytes after its header.
	TrailingBytes
	// LongData: a DAT with more than MaxPayload bytes.
	LongData
	// NoSession: the peer has no socket, and the packet does not open one.
	NoSession
	// NotListening: the packet asks to open a socket, but the router does not listen.
	NotListening
	// BacklogFull: the packet asks to open a socket, but the backlog is full.
	BacklogFull
	// TooManySessions: the packet asks to open a socket, but the router has too many.
	TooManySessions
	// Duplicate: a DAT or FIN that was already received.
	Duplicate
	// OutsideFence: a DAT or FIN beyond the fence.
	OutsideFence
	// BehindFIN: a DAT or FIN after a FIN, or a FIN before a DAT.
	BehindFIN
	// OldACK: an ACK older than one that was already processed.
	OldACK
	// UnsentACK: an ACK of packets that were never sent.
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
