package control

import (
	"net/netip"
	"time"
)

// SendFile connects, sends the file at Path and closes; it waits until the peer has acknowledged
// everything.
type SendFile struct {
	Answer[Transfer]
	// Path is the file; empty: send Random bytes.
	Path string     `json:"path"`
	Addr netip.Addr `json:"addr"`
	Port uint16     `json:"port"`
	// Offset is the first byte to send, to continue an interrupted transfer. The peer's RecvFile
	// must have the same Offset, because it is not sent.
	Offset int64 `json:"offset,omitempty"`
	// Random is the number of random bytes to send if Path is empty.
	Random int64 `json:"random,omitempty"`
	// Once says that the client will not resume the transfer, so its error omits how to resume.
	Once bool `json:"once,omitempty"`
	// NoVerify sends only the bytes of the file. Otherwise a RecvFile at the other end also
	// receives their length and SHA-256, and answers with the SHA-256 of its file.
	NoVerify bool `json:"no_verify,omitempty"`
	// Progress, if set, is called when the connection is established, then a few times a second
	// and once at the end, never concurrently.
	Progress func(Progress) `json:"-"`
}

// RecvFile listens, accepts one connection, stores the received data in Path and closes. During the
// transfer, and after a failure, the data is in Path with ".part" appended.
type RecvFile struct {
	Answer[Transfer]
	// Path is the file; empty: the data is counted and discarded.
	Path string `json:"path"`
	Port uint16 `json:"port"`
	// Resume appends to the data of an interrupted transfer, or to its first Offset bytes; the
	// rest is discarded.
	Resume bool  `json:"resume,omitempty"`
	Offset int64 `json:"offset,omitempty"`
	// Size and SHA256, if set, are the expected size and digest of the whole file. If they differ,
	// the data stays in the .part file, and the error is ErrMismatch.
	Size   int64  `json:"size,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Overwrite replaces an existing file, and the .part file of an earlier transfer.
	Overwrite bool `json:"overwrite,omitempty"`
	// Once and NoVerify are as in SendFile.
	Once     bool `json:"once,omitempty"`
	NoVerify bool `json:"no_verify,omitempty"`
	// Progress is as in SendFile, but the first call reports that the listener is ready, so that
	// the sender may start. Total is -1 unless there is a Size.
	Progress func(Progress) `json:"-"`
}

// Transfers lists the transfers in progress, oldest first.
type Transfers struct{ Answer[[]Underway] }

// Underway is a transfer in progress.
type Underway struct {
	ID   int    `json:"id"` // number of the transfer, from 1, never reused
	Path string `json:"path"`
	Sent bool   `json:"sent"` // direction; false: received
	// What is the command: "sendfile", "recvfile" or "fetch".
	What string `json:"what"`
	// Port is the port on which a recvfile listens; 0 for others.
	Port     uint16         `json:"port,omitempty"`
	Peer     netip.AddrPort `json:"peer"` // peer's address; not valid: not connected yet
	Since    time.Time      `json:"since"`
	Progress Progress       `json:"progress"`
}

// StopTransfer stops a transfer. The request that started it fails with ErrStopped.
type StopTransfer struct {
	Answer[Nothing]
	ID int `json:"id"`
}

// Progress is the progress of a transfer. Bytes and Total count from Offset.
type Progress struct {
	// ID is the transfer's number in Underway; 0: it has none.
	ID      int           `json:"id,omitempty"`
	Offset  int64         `json:"offset,omitempty"`
	Bytes   int64         `json:"bytes"`
	Total   int64         `json:"total"` // number of bytes in all; -1: unknown
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Transfer is the result of a transfer.
type Transfer struct {
	Path    string         `json:"path"`
	Sent    bool           `json:"sent"` // direction; false: received
	SID     int            `json:"sid"`
	Peer    netip.AddrPort `json:"peer"`
	Offset  int64          `json:"offset,omitempty"` // offset of the first byte
	Bytes   int64          `json:"bytes"`            // bytes transferred, starting at Offset
	Seconds float64        `json:"seconds"`          // seconds between the first byte and the last
	MBPerS  float64        `json:"mb_per_s"`
	SHA256  string         `json:"sha256"` // the digest of the first Offset + Bytes bytes, in hex
	// Verified is set if both ends compared their SHA-256, and they are equal.
	Verified bool `json:"verified,omitempty"`
	// Note is a remark on a successful transfer; empty: no remark.
	Note string `json:"note,omitempty"`
	// Once is the request's Once: the client that set it reports the result itself.
	Once bool `json:"once,omitempty"`

	// These are possible limits of the rate; zero for a receiver.
	Retransmits  uint64        `json:"retransmits"`
	Timeouts     uint64        `json:"timeouts"`
	TailProbes   uint64        `json:"tail_probes"`
	WindowProbes uint64        `json:"window_probes"`
	RTT          time.Duration `json:"rtt_ns"`
	MinRTT       time.Duration `json:"min_rtt_ns"`
	MSS          int           `json:"mss"`
}
