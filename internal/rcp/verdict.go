package rcp

// Verdict is what became of a packet.
type Verdict uint8

// The verdicts. All but Accepted are counted in Info.Dropped.
const (
	// Accepted is a packet that told something new, or might have.
	Accepted Verdict = iota
	// ShortHeader is a datagram of fewer bytes than a header has.
	ShortHeader
	// UnknownType is one whose type is neither DAT, ACK nor FIN.
	UnknownType
	// BadBitmap is an ACK whose bitmap is empty, too long or not of whole words.
	BadBitmap
	// TrailingBytes is a FIN with bytes behind its header.
	TrailingBytes
	// LongData is a DAT with more than MaxPayload bytes.
	LongData
	// NoSession is a packet that opens nothing from a peer without a socket.
	NoSession
	// NotListening is one that would open a socket where nobody listens.
	NotListening
	// BacklogFull is one that would open one more than wait for Accept at the most.
	BacklogFull
	// TooManySessions is one that would open one more than the router has at the most.
	TooManySessions
	// Duplicate is a DAT or FIN that was there before.
	Duplicate
	// OutsideFence is a DAT or FIN too far in front of what has arrived.
	OutsideFence
	// BehindFIN is a DAT or FIN behind a FIN, or a FIN in front of a DAT.
	BehindFIN
	// OldACK is an ACK that newer ones have overtaken.
	OldACK
	// UnsentACK is an ACK of packets that were never sent.
	UnsentACK

	numVerdicts
)

var verdictNames = [numVerdicts]string{
	"accepted", "short header", "unknown type", "bad bitmap", "trailing bytes", "long data",
	"no session", "not listening", "backlog full", "too many sessions", "duplicate",
	"outside fence", "behind FIN", "old ACK", "unsent ACK",
}

// String returns the verdict's name, in words.
func (v Verdict) String() string {
	if v < numVerdicts {
		return verdictNames[v]
	}
	return "unknown verdict"
}
