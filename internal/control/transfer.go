package control

import (
	"net/netip"
	"time"
)

// SendFile connects, sends the file at Path and closes; it waits until the peer has acknowledged
// everything. Answer Transfer.
type SendFile struct {
	// Path is the file; empty: Random bytes are sent in its place.
	Path string     `json:"path"`
	Addr netip.Addr `json:"addr"`
	Port uint16     `json:"port"`
	// Offset is where it begins: what is before it the receiver has, of a transfer that was cut
	// off. The peer is not told: its RecvFile says so, too.
	Offset int64 `json:"offset,omitempty"`
	// Random is how many random bytes are sent where there is no Path.
	Random int64 `json:"random,omitempty"`
	// Once says that nobody will go on with it when it ends early: the error does not say how.
	Once bool `json:"once,omitempty"`
	// NoVerify sends the plain file to every peer. Otherwise a RecvFile at the other end gets its
	// length and SHA-256 too, and answers with the SHA-256 of what it has.
	NoVerify bool `json:"no_verify,omitempty"`
	// Progress, if set, is called once when the connection stands, then a few times a second and
	// once at the end; never twice at once.
	Progress func(Progress) `json:"-"`
}

func (SendFile) answers(Transfer) {}

// RecvFile listens, takes one connection, stores what comes at Path and closes. While it runs the
// data is in Path with ".part" behind it, and it stays there when the transfer fails.
// Answer Transfer.
type RecvFile struct {
	// Path is the file; empty: what comes is counted, and dropped.
	Path string `json:"path"`
	Port uint16 `json:"port"`
	// Resume stores what comes behind what a transfer that was cut off has left, or behind the
	// first Offset bytes of it, and drops the rest.
	Resume bool  `json:"resume,omitempty"`
	Offset int64 `json:"offset,omitempty"`
	// Size and SHA256, if set, are what the whole file must have: else it stays what it was
	// while it came, with an ErrMismatch.
	Size   int64  `json:"size,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Overwrite lets it replace a file that has the name, or what an earlier transfer left in
	// Path with ".part".
	Overwrite bool `json:"overwrite,omitempty"`
	// Once and NoVerify are as in SendFile.
	Once     bool `json:"once,omitempty"`
	NoVerify bool `json:"no_verify,omitempty"`
	// Progress is as in SendFile, but the first call says that the listener stands (so an operator
	// may tell the sender to start), and Total is -1 unless there is a Size.
	Progress func(Progress) `json:"-"`
}

func (RecvFile) answers(Transfer) {}

// Transfers lists the transfers under way, whoever began them, oldest first. Answer []Underway.
type Transfers struct{}

func (Transfers) answers([]Underway) {}

// Underway is a transfer that goes on.
type Underway struct {
	ID   int    `json:"id"` // from 1, not given twice
	Path string `json:"path"`
	Sent bool   `json:"sent"` // false: received
	// What is the command that does it: "sendfile", "recvfile" or "fetch".
	What string `json:"what"`
	// Port is where a recvfile listens; 0 of others.
	Port     uint16         `json:"port,omitempty"`
	Peer     netip.AddrPort `json:"peer"` // not valid: nobody yet
	Since    time.Time      `json:"since"`
	Progress Progress       `json:"progress"`
}

// StopTransfer ends a transfer under way; it fails with ErrStopped for whoever began it.
// Answer Nothing.
type StopTransfer struct {
	ID int `json:"id"`
}

func (StopTransfer) answers(Nothing) {}

// Progress is how far a transfer has come. Bytes and Total are of what is moved, behind Offset.
type Progress struct {
	// ID is the number of Underway; 0: it has none.
	ID      int           `json:"id,omitempty"`
	Offset  int64         `json:"offset,omitempty"`
	Bytes   int64         `json:"bytes"`
	Total   int64         `json:"total"` // -1: not known
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Transfer is what became of a transfer.
type Transfer struct {
	Path    string         `json:"path"`
	Sent    bool           `json:"sent"` // false: received
	SID     int            `json:"sid"`
	Peer    netip.AddrPort `json:"peer"`
	Offset  int64          `json:"offset,omitempty"` // where it began
	Bytes   int64          `json:"bytes"`            // that were moved, behind Offset
	Seconds float64        `json:"seconds"`          // from the first byte to the last
	MBPerS  float64        `json:"mb_per_s"`
	SHA256  string         `json:"sha256"` // of the file up to Offset and Bytes, in hex
	// Verified says that both ends have compared SHA-256, which were equal.
	Verified bool `json:"verified,omitempty"`
	// Note is empty unless there is something to say of what succeeded.
	Note string `json:"note,omitempty"`
	// Once is the request's: whoever made it tells what became of it.
	Once bool `json:"once,omitempty"`

	// Why it was not faster; zero of a receiver.
	Retransmits  uint64        `json:"retransmits"`
	Timeouts     uint64        `json:"timeouts"`
	TailProbes   uint64        `json:"tail_probes"`
	WindowProbes uint64        `json:"window_probes"`
	RTT          time.Duration `json:"rtt_ns"`
	MinRTT       time.Duration `json:"min_rtt_ns"`
	MSS          int           `json:"mss"`
}
