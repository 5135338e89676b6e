package control

import (
	"net/netip"
	"time"
)

// RDTOptions is how RDT, the reliable data transfer of founding document 003, behaves at one
// end. Window, Payload, Timeout, Cumulative, Compress and Interleave are the server's, for it is
// he who sends; Checksum is the client's, whom the server follows.
type RDTOptions struct {
	// Window is how many packets may be without an acknowledgment; 0: 128.
	Window int `json:"window,omitempty"`
	// Payload is how many bytes of an object a packet carries; 0: 1325.
	Payload int `json:"payload,omitempty"`
	// Checksum is what packets are verified by: md5 or crc32c; empty: md5.
	Checksum string `json:"checksum,omitempty"`
	// Timeout is how long a packet waits for its acknowledgment until it is sent again; 0: as
	// long as round trips suggest (RFC 6298), a second as long as there was none.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Cumulative has acknowledgments name nothing but what is expected next, as the document
	// does: a hole is then filled once in three of them, or a time-out. Otherwise they name the
	// packet that they answer, too, and nothing is repeated but what was lost.
	Cumulative bool `json:"cumulative,omitempty"`
	// Compress compresses each packet that becomes shorter by it (RFC 1950).
	Compress bool `json:"compress,omitempty"`
	// Interleave lets the objects of a flow take turns, a packet each.
	Interleave bool `json:"interleave,omitempty"`
	// Patience is how long either end goes on without progress; 0: 10 s.
	Patience time.Duration `json:"patience_ns,omitempty"`
}

// RDTServe gives files to whoever asks for them on a UDP port, as they are now, until an
// RDTClose; answer RDTServed.
type RDTServe struct {
	Port uint16 `json:"port"`
	// Paths are files, each called by the last word of its path, and folders, whose files, and
	// those of the folders in it, are called by their paths from there.
	Paths   []string   `json:"paths"`
	Options RDTOptions `json:"options"`
}

func (RDTServe) answers(RDTServed) {}

// RDTServed is a UDP port with a server.
type RDTServed struct {
	Local   netip.AddrPort `json:"local"` // 0.0.0.0 when it takes every address
	Objects int            `json:"objects"`
	Bytes   int64          `json:"bytes"`
}

// RDTClose ends whatever RDT has on a UDP port, and frees it; answer Nothing.
type RDTClose struct {
	Port uint16 `json:"port"`
}

func (RDTClose) answers(Nothing) {}

// RDTFlows asks for every server and every flow of objects; answer []RDTFlow.
type RDTFlows struct{}

func (RDTFlows) answers([]RDTFlow) {}

// RDTFlow is a flow from one end's view, or a server, whose flows follow it.
type RDTFlow struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"` // 0.0.0.0:0 of a server
	// State is serving for a server; sending or done for a flow of a server; and receiving or
	// done for one that comes.
	State string `json:"state"`
	// Objects and Bytes are what there is of a server, what was asked for of its flows, and what
	// has arrived of one that comes.
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`

	Sent     uint64        `json:"sent"`  // packets: of data, or of one that comes acknowledgments
	Again    uint64        `json:"again"` // of them repeats
	Received uint64        `json:"received"`
	InFlight int           `json:"in_flight"` // packets without an acknowledgment
	SRTT     time.Duration `json:"srtt_ns"`   // 0: there was no sample
}

// RDTList asks a server what it has; answer []RDTEntry.
type RDTList struct {
	Addr    netip.Addr `json:"addr"`
	Port    uint16     `json:"port"`
	Options RDTOptions `json:"options"`
}

func (RDTList) answers([]RDTEntry) {}

// RDTEntry is an object that a server has.
type RDTEntry struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// RDTFetch takes objects from a server, many in one flow; answer RDTFetched.
type RDTFetch struct {
	Addr netip.Addr `json:"addr"`
	Port uint16     `json:"port"`
	// Names are the objects, in the order in which they are to leave; empty: all.
	Names []string `json:"names,omitempty"`
	// Dir is the folder that they are stored in, each in a file of another name until it is whole.
	// If it is not there it is made, in a folder that is. Empty: they are compared and forgotten.
	Dir string `json:"dir,omitempty"`
	// Overwrite lets objects replace files that have their names.
	Overwrite bool       `json:"overwrite,omitempty"`
	Options   RDTOptions `json:"options"`
	// Progress, if set, is called when the server has said what it has, then a few times a second
	// and once at the end; never twice at once.
	Progress func(Progress) `json:"-"`
}

func (RDTFetch) answers(RDTFetched) {}

// RDTFetched is what came of a fetch. Objects that did not come are no error of it: see Problem.
type RDTFetched struct {
	Objects []RDTObject `json:"objects"` // in the order asked for
	Bytes   int64       `json:"bytes"`   // of those that are whole
	Seconds float64     `json:"seconds"` // from the first request on

	Received uint64 `json:"received"` // packets that brought something new
	Twice    uint64 `json:"twice"`    // packets that brought what was there
	Damaged  uint64 `json:"damaged"`  // packets with a wrong checksum
	Acks     uint64 `json:"acks"`     // sent
	Requests uint64 `json:"requests"` // sent

	Made string `json:"made,omitempty"` // the folder, if it was not there before
}

// RDTObject is what became of one object. Times count from the first request.
type RDTObject struct {
	RDTEntry
	Path string `json:"path,omitempty"` // where it was stored
	// Began is when the first of it arrived, Done when the last did; both are 0 if nothing came.
	Began float64 `json:"began_seconds"`
	Done  float64 `json:"done_seconds"`
	// Problem is empty if it is whole and its SHA-256 is what the server had said.
	Problem string `json:"problem,omitempty"`
}
