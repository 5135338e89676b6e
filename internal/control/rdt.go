package control

import (
	"net/netip"
	"time"
)

// RDTOptions configures one end of RDT, the reliable data transfer of founding document 003. The
// server, which sends, uses Window, Payload, Timeout, Cumulative, Compress and Interleave. The
// client chooses the Checksum, and the server uses the same.
type RDTOptions struct {
	// Window is the maximum number of unacknowledged packets; 0: 128.
	Window int `json:"window,omitempty"`
	// Payload is the number of an object's bytes in a packet; 0: 1325.
	Payload int `json:"payload,omitempty"`
	// Checksum is the algorithm of the packets' checksums: md5 or crc32c; empty: md5.
	Checksum string `json:"checksum,omitempty"`
	// Timeout is the retransmission timeout of a packet; 0: computed from the round-trip time (RFC
	// 6298), and one second before the first sample.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
	// Cumulative limits acknowledgments to the next expected packet, as in document 003. A missing
	// packet is then retransmitted after every third duplicate, or a timeout. Otherwise they also
	// name the received packet, and only lost packets are retransmitted.
	Cumulative bool `json:"cumulative,omitempty"`
	// Compress compresses each packet that becomes shorter (RFC 1950).
	Compress bool `json:"compress,omitempty"`
	// Interleave sends one packet of each object of a flow in turn.
	Interleave bool `json:"interleave,omitempty"`
	// Patience is how long either end waits without progress; 0: 10 s.
	Patience time.Duration `json:"patience_ns,omitempty"`
}

// RDTServe serves files, as they are now, on a UDP port until an RDTClose.
type RDTServe struct {
	Answer[RDTServed]
	Port uint16 `json:"port"`
	// Paths are files and directories. A file has its base name. The files of a directory, and of
	// those below it, have their path relative to it.
	Paths   []string   `json:"paths"`
	Options RDTOptions `json:"options"`
}

// RDTServed is the UDP port of a server.
type RDTServed struct {
	Local   netip.AddrPort `json:"local"` // bound address; 0.0.0.0: every address
	Objects int            `json:"objects"`
	Bytes   int64          `json:"bytes"`
}

// RDTClose closes the RDT server or client on a UDP port, and its flows.
type RDTClose struct {
	Answer[Nothing]
	Port uint16 `json:"port"`
}

// RDTFlows lists the servers, each before its flows, and the clients' flows.
type RDTFlows struct{ Answer[[]RDTFlow] }

// RDTFlow is one end of a flow, or a server.
type RDTFlow struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"` // peer's address; 0.0.0.0:0 for a server
	// State is serving for a server, sending or done for its flows, and receiving or done for a
	// client's flow.
	State string `json:"state"`
	// For a server, Objects and Bytes count what it offers; for a server's flow, what the client
	// requested; for a client's flow, what it has received.
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`

	Sent     uint64        `json:"sent"`  // packets sent: data, or a client's acknowledgments
	Again    uint64        `json:"again"` // retransmitted packets
	Received uint64        `json:"received"`
	InFlight int           `json:"in_flight"` // packets sent but not acknowledged
	SRTT     time.Duration `json:"srtt_ns"`   // smoothed round-trip time; 0: no sample
}

// RDTList requests a server's listing.
type RDTList struct {
	Answer[[]RDTEntry]
	Addr    netip.Addr `json:"addr"`
	Port    uint16     `json:"port"`
	Options RDTOptions `json:"options"`
}

// RDTEntry is an object of a server.
type RDTEntry struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// RDTFetch fetches objects from a server, many in one flow.
type RDTFetch struct {
	Answer[RDTFetched]
	Addr netip.Addr `json:"addr"`
	Port uint16     `json:"port"`
	// Names are the objects, in the order of transfer; empty: all.
	Names []string `json:"names,omitempty"`
	// Dir is the directory for the objects, which have temporary names until they are complete. It
	// is created if it does not exist, but its parent must exist. Empty: the objects are verified
	// and discarded.
	Dir string `json:"dir,omitempty"`
	// Overwrite replaces existing files with the objects' names.
	Overwrite bool       `json:"overwrite,omitempty"`
	Options   RDTOptions `json:"options"`
	// Progress, if set, is called after the listing, then a few times a second and once at the end,
	// never concurrently.
	Progress func(Progress) `json:"-"`
}

// RDTFetched is the result of a fetch. If an object failed, its Problem says why.
type RDTFetched struct {
	Objects []RDTObject `json:"objects"` // objects in the order of Names
	Bytes   int64       `json:"bytes"`   // total size of the complete objects
	Seconds float64     `json:"seconds"` // seconds since the first request

	Received uint64 `json:"received"` // packets with new data
	Twice    uint64 `json:"twice"`    // duplicate packets
	Damaged  uint64 `json:"damaged"`  // packets with a wrong checksum
	Acks     uint64 `json:"acks"`     // acknowledgments sent
	Requests uint64 `json:"requests"` // requests sent

	Made string `json:"made,omitempty"` // the directory, if the fetch created it
}

// RDTObject is the result of one object. Times count from the first request.
type RDTObject struct {
	RDTEntry
	Path string `json:"path,omitempty"` // path of the stored file
	// Began is when the first packet of the object arrived, and Done is when the last one did. Both
	// are 0 if nothing arrived.
	Began float64 `json:"began_seconds"`
	Done  float64 `json:"done_seconds"`
	// Problem is empty if the object is complete and its SHA-256 equals that in the listing.
	Problem string `json:"problem,omitempty"`
}
