package udp

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// The space of a received datagram in the receive buffer: a record before its payload, and at least
// minCharge in all, so that the buffer's size also limits the number of tiny datagrams.
const (
	// Source address and port, destination address, payload length, interface, TTL, and Checked.
	recordLen = 16
	minCharge = 256
)

func charge(payload int) int { return max(minCharge, recordLen+payload) }

// enqueue appends one whole datagram to the ring; false: it does not fit.
func enqueue(r *buffer.Ring, from netip.AddrPort, a *Arrival, payload []byte) bool {
	if r.Free() < charge(len(payload)) {
		return false
	}
	var record [recordLen]byte
	*(*[4]byte)(record[:]) = from.Addr().As4()
	binary.BigEndian.PutUint16(record[4:], from.Port())
	*(*[4]byte)(record[6:]) = a.Dst.As4()
	binary.BigEndian.PutUint16(record[10:], uint16(len(payload)))
	binary.BigEndian.PutUint16(record[12:], uint16(a.Iface))
	record[14] = a.TTL
	if a.Checked {
		record[15] = 1
	}
	tail := r.Tail()
	r.WriteAt(tail, record[:])
	r.WriteAt(tail+recordLen, payload)
	// A padded record may end in a chunk without any of its bytes. Writing the last byte allocates
	// that chunk.
	end := tail + uint64(charge(len(payload)))
	if recordLen+len(payload) < minCharge {
		r.WriteAt(end-1, record[:1])
	}
	r.Commit(end)
	return true
}

// Received is the metadata of a datagram.
type Received struct {
	From netip.AddrPort
	To   netip.Addr
	Len  int // payload in bytes, which may be more than fit in the caller's buffer
	// Iface is the interface on which it arrived, TTL its remaining time to live.
	Iface int
	TTL   uint8
	// Checked: the link knows that the datagram is undamaged.
	Checked bool
}

// Dequeue removes the oldest datagram of a socket's ring and copies its payload to p; what does not
// fit is lost. It returns false if the ring is empty. The ring's consumer calls it, which may be
// another goroutine than the socket's owner.
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
		From: netip.AddrPortFrom(netip.AddrFrom4([4]byte(record[:])),
			binary.BigEndian.Uint16(record[4:])),
		To: netip.AddrFrom4([4]byte(record[6:])), Len: n,
		Iface: int(binary.BigEndian.Uint16(record[12:])), TTL: record[14],
		Checked: record[15] == 1,
	}, true
}
