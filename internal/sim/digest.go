package sim

import (
	"encoding/binary"
	"math/bits"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// Hash returns a digest of all packets sent and received so far, and of their times. Two runs with
// equal hashes are the same.
func (w *World) Hash() uint64 { return w.digest.sum }

// hashedBytes is the number of bytes of a packet that are hashed: the headers, whose checksum
// covers the rest.
const hashedBytes = 40

// digest is a hash of a run's packets and times. sum changes with each entry.
type digest struct{ sum uint64 }

func (j *digest) sent(now clock.Time, v *direction, t *buffer.Train) {
	head := t.Pieces[0]
	j.add(now, v.id<<1, t.Bytes, head[:min(len(head), hashedBytes)])
	// An IPv6 header has 40 bytes and no checksum, so the hash also covers the next bytes.
	if head[0]>>4 == 6 && len(head) > hashedBytes {
		j.add(now, v.id<<1, t.Bytes, head[hashedBytes:min(len(head), 2*hashedBytes)])
	}
}

func (j *digest) arrived(now clock.Time, v *direction, data []byte) {
	j.add(now, v.id<<1|1, len(data), data[:min(len(data), hashedBytes)])
}

// add adds an entry to the hash: time, direction of a link, length, and headers.
func (j *digest) add(now clock.Time, where uint64, size int, head []byte) {
	place := where<<32 | uint64(size)
	if len(head) < hashedBytes {
		h := mix(j.sum^uint64(now), place)
		for ; len(head) >= 8; head = head[8:] {
			h = mix(h, binary.LittleEndian.Uint64(head))
		}
		j.sum = h
		return
	}
	// Three independent products cover the whole entry.
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(head[at:]) }
	h := fold(word(0)^0xa0761d6478bd642f, word(8)^0xe7037ed1a0b428db) ^
		fold(word(16)^0x8ebc6af09c88c6e3, word(24)^0x589965cc75374cc3) ^
		fold(word(32)^0x1d8e4e27c47d124f, place^0xeb44accab455d165)
	j.sum = mix(j.sum^uint64(now), h)
}

// fold multiplies two words and combines the halves of the product, so that each bit of both words
// affects the result.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// mix is a step of a multiplicative hash. A difference of a single bit spreads over the whole word.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}
