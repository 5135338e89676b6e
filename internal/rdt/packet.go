package rdt

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Packets are big-endian, with a digest of 16 bytes (4 for CRC32C):
//
//	data     sequence 4 | digest 16 | stream 2 | timestamp 8 | state 2 | offset 4 | payload
//	request  the same: the first sequence number, and the requested streams, 2 bytes each
//	ACK      sequence 4 | digest 16
//	echo     sequence 4 | digest 16 | arrived 4 | timestamp 8
//
// The lengths are the document's: 36 bytes for the header of a data packet, 20 for an
// acknowledgment. Where the document has the length of the payload, which UDP also has, these
// packets have the offset of the payload in its object. So objects can be reassembled regardless of
// losses. The timestamp counts nanoseconds of the sender's clock.
const (
	digestAt = 4
	ackLen   = 4  // length of an ACK without its digest
	echoLen  = 16 // length of an echo without its digest
	dataLen  = 20 // length of a data header without its digest
)

// state is the flags of a packet.
type state uint16

const (
	stateEnd        state = 1 << iota // the object ends at offset; the packet has no payload
	stateCompressed                   // the payload is compressed
	stateEcho                         // the sender requests an echo
	stateAbsent                       // the object does not exist; used with stateEnd
	stateRequest                      // the packet is a request

	stateAll = stateEnd | stateCompressed | stateEcho | stateAbsent | stateRequest
)

// possible reports whether a packet with a payload of n bytes can have the flags s.
func (s state) possible(n int) bool {
	switch {
	case s&^stateAll != 0:
		return false
	case s&stateRequest != 0:
		return s == stateRequest
	case s&stateEnd != 0:
		return n == 0 && s&stateCompressed == 0
	}
	return n > 0 && s&stateAbsent == 0
}

type kind uint8

const (
	kindData kind = iota
	kindRequest
	kindAck
	kindEcho
)

// packet is a parsed packet of any kind. Fields that this kind does not have are zero.
type packet struct {
	kind     kind
	stream   uint16
	state    state
	sequence uint32 // the packet's number; in an acknowledgment, the next expected number
	offset   uint32
	arrived  uint32
	stamp    clock.Time
	payload  []byte
}

// codec parses and builds the packets of one flow.
type codec struct {
	digest     digester
	maxPayload int
}

func newCodec(cfg *Config) codec {
	return codec{newDigester(cfg.Checksum), max(cfg.Payload, 2*MaxObjects)}
}

// parse parses b. The payload is a slice of b. If sound is set, the caller knows that b is intact.
func (c *codec) parse(b []byte, sound bool) (p packet, drop Drop) {
	size := c.digest.size
	n := len(b) - size
	switch {
	case n == ackLen:
		p.kind = kindAck
	case n == echoLen:
		p.kind = kindEcho
	case n < dataLen || n > dataLen+c.maxPayload:
		return p, DropLength
	}
	if !sound && !c.digest.verify(b) {
		return p, DropChecksum
	}
	p.sequence = binary.BigEndian.Uint32(b)
	b = b[digestAt+size:]
	if p.kind == kindAck {
		return p, dropNone
	}
	if p.kind == kindEcho {
		p.arrived = binary.BigEndian.Uint32(b)
		p.stamp = clock.Time(binary.BigEndian.Uint64(b[4:]))
		return p, dropNone
	}
	p.stream = binary.BigEndian.Uint16(b)
	p.stamp = clock.Time(binary.BigEndian.Uint64(b[2:]))
	p.state = state(binary.BigEndian.Uint16(b[10:]))
	p.offset = binary.BigEndian.Uint32(b[12:])
	p.payload = b[16:]
	if !p.state.possible(len(p.payload)) {
		return p, DropState
	}
	if p.state&stateRequest != 0 {
		p.kind = kindRequest
	}
	return p, dropNone
}

// open appends the header of p and returns its start. The caller appends the payload and then calls
// seal.
func (c *codec) open(b []byte, p *packet) (_ []byte, start int) {
	start = len(b)
	b = binary.BigEndian.AppendUint32(b, p.sequence)
	var none [16]byte
	b = append(b, none[:c.digest.size]...)
	switch p.kind {
	case kindAck:
		return b, start
	case kindEcho:
		b = binary.BigEndian.AppendUint32(b, p.arrived)
		b = binary.BigEndian.AppendUint64(b, uint64(p.stamp))
	case kindData, kindRequest:
		b = binary.BigEndian.AppendUint16(b, p.stream)
		b = binary.BigEndian.AppendUint64(b, uint64(p.stamp))
		b = binary.BigEndian.AppendUint16(b, uint16(p.state))
		b = binary.BigEndian.AppendUint32(b, p.offset)
	}
	return b, start
}

func (c *codec) append(b []byte, p *packet) []byte {
	b, start := c.open(b, p)
	b = append(b, p.payload...)
	c.digest.seal(b[start:])
	return b
}
