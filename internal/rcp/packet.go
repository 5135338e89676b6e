package rcp

import "encoding/binary"

// Type is a packet's first byte.
type Type uint8

// The types of packets.
const (
	// DAT carries bytes of the stream; the first one opens a socket.
	DAT Type = 1
	// ACK says which packets arrived.
	ACK Type = 2
	// FIN ends the stream, and has a sequence number in it.
	FIN Type = 3
)

// String returns the document's name of the type.
func (t Type) String() string {
	switch t {
	case DAT:
		return "DAT"
	case ACK:
		return "ACK"
	case FIN:
		return "FIN"
	}
	return "unknown"
}

// Sizes of the format.
const (
	// HeaderLen is the type and the sequence number.
	HeaderLen = 1 + 4
	// wordBits is how many packets one word of a bitmap tells about, and wordLen its
	// bytes. The document's bitmap has one word; a wider fence has more of them behind
	// it, where its decoder does not look.
	wordBits = 32
	wordLen  = wordBits / 8
	// MaxWidth is the widest fence: 32 words.
	MaxWidth  = 32 * wordBits
	maxBitmap = MaxWidth / 8
)

// Packet is one packet. Its slices are lent by whoever parsed it.
type Packet struct {
	Type Type
	// Seq is the packet's number; that of an ACK is the lowest that has not arrived, or
	// has arrived and finds no room behind what was read.
	Seq uint32
	// Bitmap is of an ACK: bit i, counted from the lowest of the first big-endian word
	// on, is packet Seq+i.
	Bitmap Bitmap
	Data   []byte // of a DAT
}

// Parse takes a datagram apart. Its verdict is Accepted or says what is wrong with it.
func Parse(b []byte) (Packet, Verdict) {
	if len(b) < HeaderLen {
		return Packet{}, ShortHeader
	}
	p := Packet{Type: Type(b[0]), Seq: binary.BigEndian.Uint32(b[1:])}
	rest := b[HeaderLen:]
	switch p.Type {
	case DAT:
		p.Data = rest
	case ACK:
		if len(rest) == 0 || len(rest)%wordLen != 0 || len(rest) > maxBitmap {
			return Packet{}, BadBitmap
		}
		p.Bitmap = rest
	case FIN:
		if len(rest) != 0 {
			return Packet{}, TrailingBytes
		}
	default:
		return Packet{}, UnknownType
	}
	return p, Accepted
}

// Append encodes p behind b. Only what its type has is encoded.
func (p *Packet) Append(b []byte) []byte {
	b = append(b, byte(p.Type))
	b = binary.BigEndian.AppendUint32(b, p.Seq)
	switch p.Type {
	case DAT:
		b = append(b, p.Data...)
	case ACK:
		b = append(b, p.Bitmap...)
	case FIN:
	}
	return b
}

// Bitmap is a row of big-endian words, each counted from its lowest bit.
type Bitmap []byte

// Len returns how many packets the bitmap tells about.
func (m Bitmap) Len() int { return 8 * len(m) }

// Has reports whether bit i, less than Len, is set.
func (m Bitmap) Has(i int) bool { return m[at(i)]>>(i%8)&1 != 0 }

// Set sets bit i, less than Len.
func (m Bitmap) Set(i int) { m[at(i)] |= 1 << (i % 8) }

// at returns the byte that holds bit i: words are big-endian.
func at(i int) int { return i/wordBits*wordLen + wordLen - 1 - i%wordBits/8 }

// bitmapLen returns how many bytes a fence's bitmap has.
func bitmapLen(width int) int { return (width + wordBits - 1) / wordBits * wordLen }

// expand returns the number nearest to ref whose lowest 32 bits are seq; one that would
// be negative is far in front instead.
func expand(ref uint64, seq uint32) uint64 {
	n := ref + uint64(int64(int32(seq-uint32(ref))))
	if int64(n) < 0 {
		n += 1 << 32
	}
	return n
}
