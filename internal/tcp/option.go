package tcp

import (
	"encoding/binary"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// Option kinds, RFC 9293 §3.2, RFC 7323 §2-3, RFC 2018 §2-3.
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
	// maxSACKBlocks is how many blocks fit in the 40 bytes of options if there are no other options
	// (RFC 2018 §3).
	maxSACKBlocks = 4
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
	// UserTimeout is the value of the option of RFC 5482: a bit for minutes, and a 15-bit number;
	// zero: absent.
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

// maxBlocks returns how many SACK blocks fit with the other options of the list: three with
// timestamps, otherwise four (RFC 2018 §3).
func (o *Options) maxBlocks() uint8 {
	if o.HasTimestamps {
		return maxSACKBlocks - 1
	}
	return maxSACKBlocks
}

// addBlock appends a SACK block. The caller must not exceed maxBlocks.
func (o *Options) addBlock(start, end uint64) {
	o.SACK[o.SACKCount] = SACKBlock{Start: uint32(start), End: uint32(end)}
	o.SACKCount++
}

// size returns the length of the encoded list, padded to 32-bit words.
func (o *Options) size() int {
	n := 0
	if o.MSS != 0 {
		n += 4
	}
	if o.HasWindowScale {
		n += 4
	}
	if o.SACKPermitted && !o.HasTimestamps {
		n += 4
	}
	if o.HasTimestamps {
		n += 12
	}
	if o.UserTimeout != 0 {
		n += 4
	}
	if o.FileDigest {
		n += 8
	}
	if o.SACKCount > 0 {
		n += 4 + 8*int(o.SACKCount)
	}
	return n
}

// put writes the list to b, which holds size() bytes. NOPs before each option align it to 32-bit
// words (RFC 7323 appendix A).
func (o *Options) put(b []byte) {
	if len(b) == stampBytes && o.HasTimestamps && !o.SACKPermitted {
		binary.BigEndian.PutUint32(b, stampLead) // twelve bytes: there is no other option
		binary.BigEndian.PutUint32(b[4:], o.TSVal)
		binary.BigEndian.PutUint32(b[8:], o.TSEcr)
		return
	}
	if o.MSS != 0 {
		b[0], b[1] = optMSS, 4
		binary.BigEndian.PutUint16(b[2:], o.MSS)
		b = b[4:]
	}
	if o.HasWindowScale {
		b[0], b[1], b[2], b[3] = optNop, optWindowScale, 3, o.WindowScale
		b = b[4:]
	}
	if o.SACKPermitted && !o.HasTimestamps {
		b[0], b[1], b[2], b[3] = optNop, optNop, optSACKPermitted, 2
		b = b[4:]
	}
	if o.HasTimestamps {
		b[0], b[1] = optNop, optNop
		if o.SACKPermitted {
			b[0], b[1] = optSACKPermitted, 2
		}
		b[2], b[3] = optTimestamps, 10
		binary.BigEndian.PutUint32(b[4:], o.TSVal)
		binary.BigEndian.PutUint32(b[8:], o.TSEcr)
		b = b[12:]
	}
	if o.UserTimeout != 0 {
		b[0], b[1] = optUserTimeout, 4
		binary.BigEndian.PutUint16(b[2:], o.UserTimeout)
		b = b[4:]
	}
	if o.FileDigest {
		b[0], b[1], b[2], b[3] = optNop, optNop, optExperiment, 6
		binary.BigEndian.PutUint32(b[4:], fileDigestID)
		b = b[8:]
	}
	if o.SACKCount > 0 {
		b[0], b[1], b[2], b[3] = optNop, optNop, optSACK, 2+8*o.SACKCount
		for i, s := range o.SACK[:o.SACKCount] {
			binary.BigEndian.PutUint32(b[4+8*i:], s.Start)
			binary.BigEndian.PutUint32(b[8+8*i:], s.End)
		}
	}
}

// stamps is the state of a connection's Timestamps option (RFC 7323 §3), if hsStamps is set.
type stamps struct {
	// offset is added to the clock, so that timestamps do not reveal the host's uptime or the
	// timestamps of other connections (RFC 7323 §7.1). It depends on the tuple alone, so that
	// timestamps increase from one connection with the same tuple to the next (RFC 6191 §2).
	offset   uint32
	recent   uint32     // TS.Recent, the timestamp to echo
	recentAt clock.Time // when recent arrived
	lastAck  uint64     // Last.ACK.sent (§4.3)
}

const (
	// stampLife is how long TS.Recent is valid: 24 days (RFC 7323 §5.5). The fastest allowed clock
	// takes longer than that to wrap half way.
	stampLife = 24 * 24 * time.Hour
	// stampBytes is the size of the option in each segment, with its two NOPs.
	stampBytes = 12
)

func stampOffset(secret *[16]byte, t *Tuple) uint32 { return uint32(keyed(secret, 't', t)) }

func (s *stamps) at(when clock.Time) uint32 { return recovery.Tick(when) + s.offset }

func (s *stamps) put(now clock.Time, o *Options) {
	o.HasTimestamps, o.TSVal, o.TSEcr = true, s.at(now), s.recent
}
