package rcp

import "encoding/binary"

// Type is a packet's first byte.
type Type uint8

// These are the types of packets.
const (
	// DAT contains bytes of the stream; the first one opens a socket.
	DAT Type = 1
	// ACK reports received packets.
	ACK Type = 2
	// FIN ends the stream at its sequence number.
	FIN Type = 3
)

var typeNames = [...]string{"unknown", "DAT", "ACK", "FIN"}

// String returns the document's name of the type.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return typeNames[0]
}

// These are sizes of the format.
const (
	// HeaderLen is the length of the type and the sequence number.
	HeaderLen = 1 + 4
	// wordBits is the number of packets in a word of a bitmap, and wordLen is the word's length in
	// bytes. The document's bitmap has one word. A wider fence has further words, which the
	// document's decoder ignores.
	wordBits = 32
	wordLen  = wordBits / 8
	// MaxWidth is the widest fence: 32 words.
	MaxWidth  = 32 * wordBits
	maxBitmap = MaxWidth / 8
)

// Packet is one packet. Its slices are parts of the parsed datagram.
type Packet struct {
	Type Type
	// Seq is the packet's number. In an ACK it is the lowest packet that was not received, or that
	// does not fit in the reader's buffer.
	Seq uint32
	// Bitmap is the bitmap of an ACK. Bit i, counted from the lowest of the first big-endian word,
	// stands for packet Seq+i.
	Bitmap Bitmap
	Data   []byte // set in a DAT only
}

// Parse parses a datagram. The verdict is Accepted or the reason to drop it.
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

// Append appends the encoded packet to b. It encodes only the fields of the packet's type.
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

// Bitmap is a list of big-endian words. In each word, bits count from the lowest.
type Bitmap []byte

// Len returns the number of packets in the bitmap.
func (m Bitmap) Len() int { return 8 * len(m) }

// Has reports whether bit i, less than Len, is set.
func (m Bitmap) Has(i int) bool { return m[at(i)]>>(i%8)&1 != 0 }

// Set sets bit i, less than Len.
func (m Bitmap) Set(i int) { m[at(i)] |= 1 << (i % 8) }

// at returns the index of the byte that contains bit i, because words are big-endian.
func at(i int) int { return i/wordBits*wordLen + wordLen - 1 - i%wordBits/8 }

// bitmapLen returns the length of a fence's bitmap in bytes.
func bitmapLen(width int) int { return (width + wordBits - 1) / wordBits * wordLen }

// expand returns the number nearest to ref whose lowest 32 bits are seq. It is never negative.
func expand(ref uint64, seq uint32) uint64 {
	n := ref + uint64(int64(int32(seq-uint32(ref))))
	if int64(n) < 0 {
		n += 1 << 32
	}
	return n
}
