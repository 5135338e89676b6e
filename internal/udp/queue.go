package udp

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// What a received datagram takes of the receive buffer: a record in front of its
// payload, and in all no less than minCharge, so that the buffer's size also
// bounds how many tiny ones there are.
const (
	// Source address and port, destination address, payload length, interface, TTL, and
	// whether it was checked.
	recordLen = 16
	minCharge = 256
)

func charge(payload int) int { return max(minCharge, recordLen+payload) }

// enqueue publishes one datagram, whole, to whoever reads the ring; false: it
// has no room.
func enqueue(r *buffer.Ring, from netip.AddrPort, a *Arrival, payload []byte) bool {
	if r.Free() < charge(len(payload)) {
		return false
	}
	var record [recordLen]byte
	src := from.Addr().As4()
	copy(record[:], src[:])
	binary.BigEndian.PutUint16(record[4:], from.Port())
	copy(record[6:], a.Dst[:])
	binary.BigEndian.PutUint16(record[10:], uint16(len(payload)))
	binary.BigEndian.PutUint16(record[12:], uint16(a.Iface))
	record[14] = a.TTL
	if a.Checked {
		record[15] = 1
	}
	tail := r.Tail()
	r.WriteAt(tail, record[:])
	r.WriteAt(tail+recordLen, payload)
	// A record that is padded may end in a chunk that holds none of its bytes:
	// the last one is written, so that the ring has it.
	end := tail + uint64(charge(len(payload)))
	if recordLen+len(payload) < minCharge {
		r.WriteAt(end-1, record[:1])
	}
	r.Commit(end)
	return true
}

// Received is what came with a datagram.
type Received struct {
	From netip.AddrPort
	To   netip.Addr
	Len  int // bytes of payload, of which the caller's memory may have held fewer
	// Iface is the interface that it came by, and TTL what was left of its time to live.
	Iface int
	TTL   uint8
	// Checked: the link knows that the datagram is as it was sent.
	Checked bool
}

// Dequeue takes the oldest datagram of a socket's ring and copies as much of
// its payload as fits to p; the rest of it is lost. It is false when there is
// none. It is for the ring's consumer, which may be another goroutine than the
// socket's owner.
func Dequeue(r *buffer.Ring, p []byte) (Received, bool) {
	if r.Len() == 0 {
		return Received{}, false
	}
	end := r.Head()
	var record [recordLen]byte
	r.Read(record[:])
	n := int(binary.BigEndian.Uint16(record[10:]))
	r.Read(p[:min(n, len(p))])
	r.Release(end + uint64(charge(n)))
	return Received{
		From: netip.AddrPortFrom(netip.AddrFrom4(Addr(record[:4])),
			binary.BigEndian.Uint16(record[4:])),
		To: netip.AddrFrom4(Addr(record[6:10])), Len: n,
		Iface: int(binary.BigEndian.Uint16(record[12:])), TTL: record[14],
		Checked: record[15] == 1,
	}, true
}
