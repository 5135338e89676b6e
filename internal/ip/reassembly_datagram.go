package ip

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
)

const (
	pageBytes = 2048
	// maxUnits is the longest payload in units of eight bytes.
	maxUnits = (MaxPacketLen + fragmentUnit) / fragmentUnit
)

// page is memory for a part of a payload.
type page [pageBytes]byte

// unitSet is a set of units of eight bytes of a payload.
type unitSet [maxUnits / 64]uint64

// datagram is an incomplete datagram.
type datagram struct {
	key     fragmentKey
	arrived clock.Time
	iface   int        // interface of its first fragment
	refused DropReason // DropNone: not refused
	count   int        // number of fragments
	bytes   int        // bytes of payload
	reach   int        // offset after the last received byte
	end     int        // end of the payload; 0: unknown
	first   int        // length of the first fragment's payload; 0: not received
	ecn     uint8      // a bit for each received codepoint

	header    [HeaderLen6 + mostChainLen]byte // header of the first fragment, if received
	headerLen int

	covered unitSet // received units
	begins  unitSet // units at which fragments start
	pages   [(MaxPacketLen + pageBytes) / pageBytes]*page

	charge int // bytes of memory that the datagram uses
	source *source
	age    links // links in the queue of all datagrams
	peer   links // links in the queue of its source's datagrams
}

// fitResult describes how a fragment relates to those received before.
type fitResult uint8

const (
	fits        fitResult = iota // new data
	duplicate                    // an exact duplicate
	overlap                      // overlaps another fragment
	contradicts                  // gives another end of the datagram
)

// fit returns how a fragment relates to those received before.
func (d *datagram) fit(h *Header, payload []byte) fitResult {
	from, end := h.FragOff, h.FragOff+len(payload)
	if d.covered.any(from, end) {
		if d.holds(from, end) && h.MF == (end != d.end) && d.equal(from, payload) {
			return duplicate
		}
		return overlap
	}
	if d.end == 0 && !h.MF && end < d.reach || d.end != 0 && (!h.MF || end > d.end) {
		return contradicts
	}
	return fits
}

// add adds a fragment that fits. Its pages are allocated.
func (d *datagram) add(h *Header, b []byte) {
	payload := b[h.Len:h.TotalLen]
	from, end := h.FragOff, h.FragOff+len(payload)
	d.covered.set(from, end)
	d.begins.set(from, from+1)
	d.count++
	d.bytes += len(payload)
	d.reach = max(d.reach, end)
	d.ecn |= 1 << (h.TOS & 3)
	if !h.MF {
		d.end = end
	}
	if from == 0 {
		d.first = len(payload)
		d.headerLen = copy(d.header[:], b[:h.Len])
	}
	for at := from; at < end; {
		n := copy(d.pages[at/pageBytes][at%pageBytes:], payload)
		payload = payload[n:]
		at += n
	}
}

// complete reports whether everything was received. Fragments do not overlap, so the length
// suffices.
func (d *datagram) complete() bool { return d.end != 0 && d.bytes == d.end }

// holds reports whether a fragment with exactly these bytes was received.
func (d *datagram) holds(from, end int) bool {
	if !d.begins.any(from, from+1) {
		return false
	}
	stop := d.begins.next(from/fragmentUnit + 1)
	stop = min(stop, d.covered.gap(from/fragmentUnit+1)) * fragmentUnit
	if d.end != 0 {
		stop = min(stop, d.end)
	}
	return stop == end
}

// equal reports whether the received payload at an offset equals p.
func (d *datagram) equal(from int, p []byte) bool {
	for len(p) > 0 {
		held := d.pages[from/pageBytes][from%pageBytes:]
		n := min(len(held), len(p))
		if !bytes.Equal(held[:n], p[:n]) {
			return false
		}
		p = p[n:]
		from += n
	}
	return true
}

// ecnMask and ecnCE are a mask and a codepoint in the ECN field (RFC 3168 §5). The others are bits
// of the set of the fragments' codepoints.
const (
	ecnMask   = 3
	ecnCE     = 3
	setNotECT = 1 << 0
	setCE     = 1 << ecnCE
)

// codepoint returns the ECN codepoint of the datagram. RFC 3168 §5.3: if a fragment is CE, so is
// the datagram, unless another fragment is not ECN-capable: then the datagram is discarded. The RFC
// does not define other mixtures; here a fragment that is not ECN-capable makes the datagram so.
func (d *datagram) codepoint() (uint8, bool) {
	switch {
	case d.ecn&setCE != 0:
		return ecnCE, d.ecn&setNotECT == 0
	case d.ecn&setNotECT != 0:
		return 0, true
	}
	if d.key.dst.Is6() {
		return d.header[1] >> 4 & ecnMask, true
	}
	return d.header[1] & ecnMask, true
}

// packet appends the whole datagram to b: the first fragment's header, changed to that of an
// unfragmented packet, and the payload.
func (d *datagram) packet(b []byte, ecn uint8) []byte {
	if d.key.dst.Is6() {
		return d.packet6(b, ecn)
	}
	b = append(b, d.header[:d.headerLen]...)
	b[1] = b[1]&^ecnMask | ecn
	binary.BigEndian.PutUint16(b[2:], uint16(d.headerLen+d.end))
	binary.BigEndian.PutUint16(b[6:], binary.BigEndian.Uint16(b[6:])&flagDF)
	binary.BigEndian.PutUint16(b[10:], 0)
	binary.BigEndian.PutUint16(b[10:], checksum.Checksum(b))
	return d.appendPayload(b, d.end)
}

// packet6 is like packet, for IPv6. It removes the Fragment header (RFC 8200 §4.5).
func (d *datagram) packet6(b []byte, ecn uint8) []byte {
	fragment := d.headerLen - fragmentLen
	b = append(b, d.header[:fragment]...)
	b[nextAt(b, fragment)] = d.header[fragment]
	b[1] = b[1]&^(ecnMask<<4) | ecn<<4
	binary.BigEndian.PutUint16(b[payloadLenAt:], uint16(fragment-HeaderLen6+d.end))
	return d.appendPayload(b, d.end)
}

// fragmentZero appends the first fragment to b, as received.
func (d *datagram) fragmentZero(b []byte) []byte {
	return d.appendPayload(append(b, d.header[:d.headerLen]...), d.first)
}

func (d *datagram) appendPayload(b []byte, n int) []byte {
	for i := 0; n > 0; i++ {
		k := min(n, pageBytes)
		b = append(b, d.pages[i][:k]...)
		n -= k
	}
	return b
}

// words calls f for each word of the set that contains units of the bytes [from, end), with a
// mask of those units.
func words(from, end int, f func(word int, units uint64) bool) {
	first, last := from/fragmentUnit, (end-1)/fragmentUnit
	for w := first / 64; w <= last/64; w++ {
		units := ^uint64(0)
		if w == first/64 {
			units <<= first % 64
		}
		if w == last/64 {
			units &= ^uint64(0) >> (63 - last%64)
		}
		if !f(w, units) {
			return
		}
	}
}

// any reports whether the set contains a unit of the bytes [from, end).
func (s *unitSet) any(from, end int) (found bool) {
	words(from, end, func(w int, units uint64) bool {
		found = s[w]&units != 0
		return !found
	})
	return found
}

// set adds the units of the bytes [from, end).
func (s *unitSet) set(from, end int) {
	words(from, end, func(w int, units uint64) bool {
		s[w] |= units
		return true
	})
}

// next returns the first unit of the set from u on, or maxUnits.
func (s *unitSet) next(u int) int { return s.seek(u, 0) }

// gap returns the first unit from u on that is not in the set, or maxUnits.
func (s *unitSet) gap(u int) int { return s.seek(u, ^uint64(0)) }

// seek returns the first unit from u on whose bit differs from none's, which are all equal.
func (s *unitSet) seek(u int, none uint64) int {
	for w := u / 64; w < len(s); w++ {
		word := s[w] ^ none
		if w == u/64 {
			word &= ^uint64(0) << (u % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return maxUnits
}

// clear empties the set, which has no units after the first end bytes.
func (s *unitSet) clear(end int) {
	const word = 64 * fragmentUnit
	clear(s[:(end+word-1)/word])
}
