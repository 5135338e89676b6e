package tcp

import "encoding/binary"

// The kinds of options (RFC 9293 §3.2, RFC 7323 §2-3, RFC 2018 §2-3).
const (
	optEnd           = 0
	optNop           = 1
	optMSS           = 2
	optWindowScale   = 3
	optSACKPermitted = 4
	optSACK          = 5
	optTimestamps    = 8
	optUserTimeout   = 28
	optExperiment    = 253 // RFC 6994

	// fileDigestID is the ID of the experiment in docs/decisions/0001-file-digest.md: "TIDE".
	fileDigestID = 0x54494445

	// stampLead is the start of a lone Timestamps option: two NOPs, kind and length.
	stampLead = optNop<<24 | optNop<<16 | optTimestamps<<8 | 10
)

const (
	maxOptionBytes = 40
	maxSACKBlocks  = 4 // if there are no other options (RFC 2018 §3)
	// maxWindowScale is the largest shift. A receiver treats a larger shift as 14 (RFC 7323 §2.3).
	maxWindowScale = 14
)

// SACKBlock is one block of a SACK option: the sender of the option holds [Start, End).
type SACKBlock struct{ Start, End uint32 }

// Options is the parsed option list of one segment. Zero fields are absent.
type Options struct {
	// MSS is the largest segment that the sender of the option accepts.
	MSS uint16
	// WindowScale is valid only if HasWindowScale is set.
	WindowScale    uint8
	HasWindowScale bool
	SACKPermitted  bool
	HasTimestamps  bool
	// SACKCount counts the valid entries of SACK.
	SACKCount uint8
	// FileDigest says that a file follows with its digest (RFC 6994 §3.1, in a SYN only).
	FileDigest   bool
	TSVal, TSEcr uint32
	// UserTimeout is the value of the option of RFC 5482, a 15-bit number and a bit that selects
	// minutes; zero: absent.
	UserTimeout uint16
	SACK        [maxSACKBlocks]SACKBlock
}

// parse reads an option list into o, which is empty. It reports false if a length is below 2 or
// exceeds the list. RFC 9293 §3.1 (MUST-7) requires a host to handle illegal lengths. The caller
// drops the segment, because nothing after such a length can be trusted.
func (o *Options) parse(b []byte) bool {
	if len(b) == stampBytes && binary.BigEndian.Uint32(b) == stampLead {
		// RFC 7323 appendix A: nearly every segment carries this option and no other.
		o.HasTimestamps = true
		o.TSVal, o.TSEcr = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
		return true
	}
	for len(b) > 0 {
		kind := b[0]
		if kind == optEnd {
			return true
		}
		if kind == optNop {
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return false
		}
		o.parseOne(kind, b[2:b[1]])
		b = b[b[1]:]
	}
	return true
}

// parseOne parses the body of one option. It skips an option of a wrong length, like an unknown one
// (RFC 9293 §3.1, MUST-6).
func (o *Options) parseOne(kind byte, body []byte) {
	switch {
	case kind == optMSS && len(body) == 2:
		o.MSS = binary.BigEndian.Uint16(body)
	case kind == optWindowScale && len(body) == 1:
		o.WindowScale = min(body[0], maxWindowScale)
		o.HasWindowScale = true
	case kind == optSACKPermitted && len(body) == 0:
		o.SACKPermitted = true
	case kind == optTimestamps && len(body) == 8:
		o.TSVal = binary.BigEndian.Uint32(body)
		o.TSEcr = binary.BigEndian.Uint32(body[4:])
		o.HasTimestamps = true
	case kind == optUserTimeout && len(body) == 2:
		o.UserTimeout = binary.BigEndian.Uint16(body)
	case kind == optExperiment && len(body) == 4:
		o.FileDigest = binary.BigEndian.Uint32(body) == fileDigestID
	case kind == optSACK && len(body)%8 == 0:
		for len(body) > 0 && o.SACKCount < maxSACKBlocks {
			o.SACK[o.SACKCount] = SACKBlock{
				Start: binary.BigEndian.Uint32(body),
				End:   binary.BigEndian.Uint32(body[4:]),
			}
			o.SACKCount++
			body = body[8:]
		}
	}
}
