package link

import (
	"bytes"
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/checksum"
)

// joiner merges consecutive segments of a flow into one large packet, which the kernel accepts in
// one call. Only packets with valid checksums may be merged, because the kernel recomputes the
// checksum of the result.
type joiner struct {
	pieces [][]byte // pieces of the packet; after finish, [0] is head if segments were joined
	layout
	each  int // payload size of every segment except the last
	text  int // payload size of all segments
	count int // number of segments; 0: the joiner is empty
	bytes int // size of the segments as separate packets, with headers
	open  bool
	udp   bool // the kernel accepts joined UDP datagrams, too
	trust bool // the caller knows that the checksums are right
	// model holds the headers of the first segment, and head those of the joined packet.
	model, head []byte
	last        uint8 // TCP flags of the last segment
}

const (
	// mostJoined is the maximum length of an IPv4 packet. IPv6 allows more.
	mostJoined = 65535
	// mostPieces is Linux's UIO_MAXIOV, minus the pieces of the headers.
	mostPieces = 1024 - 8
)

// reset drops references to the packets.
func (j *joiner) reset() {
	clear(j.pieces)
	j.pieces, j.count, j.text, j.bytes, j.open, j.model = j.pieces[:0], 0, 0, 0, false, nil
}

// start starts with a packet of size bytes. If grow is set, add may append others.
func (j *joiner) start(packet [][]byte, size int, grow bool) {
	j.reset()
	j.pieces = append(j.pieces, packet...)
	j.count, j.bytes = 1, size
	if !grow || len(packet) == 0 {
		return
	}
	l, ok := parseLayout(packet[0], size)
	if !ok || size <= l.headers || !j.trust && !l.valid(packet, size) || !j.begins(l, packet[0]) {
		return
	}
	j.layout, j.model = l, packet[0][:l.headers]
	j.each, j.text = size-l.headers, size-l.headers
	j.open = true
	if l.proto == protoTCP {
		j.last = j.model[l.ip+tcpFlagsAt]
		j.open = j.last&(tcpPSH|tcpFIN) == 0
	}
}

// begins reports whether a joined packet can start with these headers.
func (j *joiner) begins(l layout, b []byte) bool {
	if l.proto == protoUDP {
		return j.udp && binary.BigEndian.Uint16(b[l.ip+udpSumAt:]) != 0
	}
	const may = tcpACK | tcpPSH | tcpFIN | tcpCWR
	flags := b[l.ip+tcpFlagsAt]
	return flags&tcpACK != 0 && flags&^may == 0
}

// valid verifies the checksums of a packet.
func (l layout) valid(packet [][]byte, size int) bool {
	b := packet[0]
	if !l.v6 && !checksum.Verify(b[:l.ip], 0) {
		return false
	}
	sum := checksum.Sum(b[l.ip:l.headers], l.pseudo(b, size-l.ip))
	// Headers consist of whole words, so the rest starts at an even offset.
	rest := b[l.headers:]
	if len(rest)%2 == 1 && len(packet) > 1 {
		return false // tidepool never splits a packet there
	}
	sum = checksum.SumPieces(packet[1:], checksum.Sum(rest, sum))
	return checksum.Fold(sum) == 0xffff
}

// add appends a packet of size bytes if it continues the last one.
func (j *joiner) add(packet [][]byte, size int) bool {
	if !j.open || len(packet) == 0 {
		return false
	}
	text := size - j.headers
	if text <= 0 || text > j.each || j.headers+j.text+text > mostJoined ||
		len(j.pieces)+len(packet) > mostPieces {
		return false
	}
	b := packet[0]
	l, ok := parseLayout(b, size)
	if !ok || l != j.layout || !j.follows(b) ||
		!j.trust && !l.valid(packet, size) {
		return false
	}
	j.pieces = append(j.pieces, b[l.headers:])
	j.pieces = append(j.pieces, packet[1:]...)
	j.text += text
	j.bytes += size
	j.count++
	j.open = text == j.each
	if l.proto == protoTCP {
		j.last = b[l.ip+tcpFlagsAt]
		j.open = j.open && j.last&(tcpPSH|tcpFIN) == 0
	}
	return true
}

// follows reports whether a packet's headers equal those of the first, except for fields that the
// kernel increments.
func (j *joiner) follows(b []byte) bool {
	m, e := j.model, binary.BigEndian
	if j.v6 {
		if !bytes.Equal(m[:ip6LengthAt], b[:ip6LengthAt]) ||
			!bytes.Equal(m[ip6NextAt:ip6Len], b[ip6NextAt:ip6Len]) {
			return false
		}
	} else if m[1] != b[1] || !bytes.Equal(m[ipFragmentAt:ipSumAt], b[ipFragmentAt:ipSumAt]) ||
		!bytes.Equal(m[sourceAt:j.ip], b[sourceAt:j.ip]) ||
		// RFC 6864 §4.1: with DF set, the identification has no meaning.
		m[ipFragmentAt]&0x40 == 0 &&
			e.Uint16(b[ipIDAt:]) != e.Uint16(m[ipIDAt:])+uint16(j.count) {
		return false
	}
	m, b = m[j.ip:], b[j.ip:j.headers]
	if !bytes.Equal(m[:tcpSeqAt], b[:tcpSeqAt]) { // TCP's or UDP's ports
		return false
	}
	if j.proto == protoUDP {
		return e.Uint16(b[udpSumAt:]) != 0
	}
	return e.Uint32(b[tcpSeqAt:]) == e.Uint32(m[tcpSeqAt:])+uint32(j.text) &&
		bytes.Equal(m[tcpAckAt:tcpFlagsAt], b[tcpAckAt:tcpFlagsAt]) &&
		m[tcpFlagsAt]&^tcpCWR == b[tcpFlagsAt]&^(tcpPSH|tcpFIN) &&
		bytes.Equal(m[tcpFlagsAt+1:tcpSumAt], b[tcpFlagsAt+1:tcpSumAt]) &&
		bytes.Equal(m[tcpUrgentAt:], b[tcpUrgentAt:])
}

// finish writes the headers of the joined packet, and returns its vnetHeader.
func (j *joiner) finish() vnetHeader {
	if j.count < 2 {
		return vnetHeader{}
	}
	e := binary.BigEndian
	b := append(j.head[:0], j.model...)
	j.head = b
	j.seal(b, j.headers+j.text)
	h := vnetHeader{
		flags: vnetNeedsChecksum, gso: j.gso(), hdrLen: uint16(j.headers),
		gsoSize: uint16(j.each), csumStart: uint16(j.ip), csumOffset: udpSumAt,
	}
	p := b[j.ip:]
	length := j.headers + j.text - j.ip
	if j.proto == protoTCP {
		h.csumOffset = tcpSumAt
		if p[tcpFlagsAt]&tcpCWR != 0 {
			h.gso |= vnetECN
		}
		p[tcpFlagsAt] |= j.last
	} else {
		e.PutUint16(p[udpLengthAt:], uint16(length))
	}
	e.PutUint16(p[h.csumOffset:], checksum.Fold(j.pseudo(b, length)))
	// The first piece contains the first packet's headers, and may contain payload after them.
	rest := j.pieces[0][j.headers:]
	if len(rest) == 0 {
		j.pieces[0] = b
		return h
	}
	j.pieces = append(j.pieces, nil)
	copy(j.pieces[1:], j.pieces)
	j.pieces[0], j.pieces[1] = b, rest
	return h
}

// cursor iterates over the packets of a train.
type cursor struct {
	train *buffer.Train
	at    int    // index of the next piece
	rest  []byte // rest of the previous piece
	done  int    // number of packets so far
}

// next appends the pieces of the next packet to list and returns its size. A piece may hold several
// packets, as in the transmit queue.
func (c *cursor) next(list [][]byte) ([][]byte, int) {
	t := c.train
	size := min(t.Size, t.Bytes-c.done*t.Size)
	c.done++
	for left := size; left > 0; {
		if len(c.rest) == 0 {
			c.rest = t.Pieces[c.at]
			c.at++
			continue
		}
		n := min(left, len(c.rest))
		list = append(list, c.rest[:n])
		c.rest = c.rest[n:]
		left -= n
	}
	return list, size
}
