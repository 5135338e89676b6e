//go:build linux

package end

import (
	"encoding/binary"
	"math/bits"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/bench/datagram"
)

// A plane moves data as a TCP would, but without a protocol. For each segment it computes and
// verifies 40 bytes of headers with checksums, and copies the data into a ring and out of it at
// both ends. It computes the checksums in plain Go. A TCP's cost above that of the plane is the
// cost of its protocol.
const (
	planeHead = 40
	ringBytes = 4 << 20
)

// blastPlane sends one train per call, from a ring.
func (p *process) blastPlane() func() (int, error) {
	count := segments(p.spec.MTU)
	mss := p.spec.MTU - planeHead
	ring, text := make([]byte, ringBytes), pattern[:count*mss]
	heads := make([]byte, count*planeHead)
	pieces := make([]unix.Iovec, 0, 2*count)
	at, seq := 0, uint32(0)
	return func() (int, error) {
		if at+len(text) > len(ring) {
			at = 0
		}
		copy(ring[at:], text) // stands for the application's Write
		pieces = pieces[:0]
		for i := range count {
			head := heads[i*planeHead:][:planeHead]
			part := ring[at+i*mss:][:mss]
			planeHeaders(head, part, seq)
			seq += uint32(mss)
			pieces = append(pieces, datagram.Piece(head), datagram.Piece(part))
		}
		at += len(text)
		return len(text), p.socket.Send(pieces, count*p.spec.MTU, p.spec.MTU)
	}
}

func planeHeaders(head, text []byte, seq uint32) {
	head[0] = 0x45
	binary.BigEndian.PutUint16(head[2:], uint16(len(head)+len(text)))
	head[10], head[11] = 0, 0
	binary.NativeEndian.PutUint16(head[10:], ^fold(sum(head[:20], 0)))
	binary.BigEndian.PutUint32(head[24:], seq)
	head[36], head[37] = 0, 0
	binary.NativeEndian.PutUint16(head[36:], ^fold(sum(text, sum(head[20:], 0))))
}

// planeReceiver verifies segments and copies them into a ring and out of it.
type planeReceiver struct {
	ring, text  []byte
	at, waiting int
	bad         int64
}

// take processes a run of segments and returns their bytes of data.
func (r *planeReceiver) take(run datagram.Received) (bytes int) {
	if r.ring == nil {
		r.ring, r.text = make([]byte, ringBytes), make([]byte, chunk)
	}
	for data := run.Data; len(data) > 0; {
		s := data[:min(run.Size, len(data))]
		data = data[len(s):]
		if len(s) < planeHead || fold(sum(s[:20], 0)) != 0xffff || fold(sum(s[20:], 0)) != 0xffff {
			r.bad += int64(len(s))
			continue
		}
		text := s[planeHead:]
		if r.at+len(text) > len(r.ring) {
			r.at, r.waiting = 0, 0
		}
		r.at += copy(r.ring[r.at:], text)
		r.waiting += len(text)
		bytes += len(text)
		if r.waiting >= len(r.text) { // stands for the application's Read
			copy(r.text, r.ring[r.at-r.waiting:r.at])
			r.waiting = 0
		}
	}
	return bytes
}

// sum adds b to a one's-complement sum with end-around carry, 32 bytes per iteration.
func sum(b []byte, s uint64) uint64 {
	var carry uint64
	for len(b) >= 32 {
		s, carry = bits.Add64(s, binary.NativeEndian.Uint64(b), carry)
		s, carry = bits.Add64(s, binary.NativeEndian.Uint64(b[8:]), carry)
		s, carry = bits.Add64(s, binary.NativeEndian.Uint64(b[16:]), carry)
		s, carry = bits.Add64(s, binary.NativeEndian.Uint64(b[24:]), carry)
		b = b[32:]
	}
	for len(b) >= 8 {
		s, carry = bits.Add64(s, binary.NativeEndian.Uint64(b), carry)
		b = b[8:]
	}
	if len(b) > 0 {
		var rest [8]byte
		copy(rest[:], b)
		s, carry = bits.Add64(s, binary.NativeEndian.Uint64(rest[:]), carry)
	}
	s, carry = bits.Add64(s, 0, carry)
	return s + carry
}

// fold reduces a sum to 16 bits, in memory order.
func fold(s uint64) uint16 {
	for s>>16 != 0 {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
