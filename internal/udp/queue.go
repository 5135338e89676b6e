package udp

import (
	"cmp"
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// In the receive buffer, a datagram has a record before its payload. Each datagram uses at least
// minCharge bytes, so that the buffer's size also limits the number of tiny datagrams.
const (
	// These are the lengths of a record: source port, payload length, interface, TTL, flags, the
	// source and destination address, and the zone of link-local addresses.
	headLen   = 8
	recordLen = headLen + 2*16 + maxZone
	minCharge = 256

	// These are the flags. The length of the zone is in the bits above them.
	flagChecked = 1 << 0
	flagIPv6    = 1 << 1
	zoneShift   = 2
	maxZone     = 0xff >> zoneShift
)

// size returns the length of a record with these flags, and the space that the datagram uses.
func size(flags byte, payload int) (record, charge int) {
	record = headLen + 2*4
	if flags&flagIPv6 != 0 {
		record = headLen + 2*16 + int(flags>>zoneShift)
	}
	return record, max(minCharge, record+payload)
}

// enqueue appends one whole datagram to the ring. It returns false if the datagram does not fit.
func enqueue(r *buffer.Ring, from netip.AddrPort, a *Arrival, payload []byte) bool {
	var record [recordLen]byte
	if a.Checked {
		record[7] |= flagChecked
	}
	if a.Src.Is6() {
		*(*[16]byte)(record[8:]), *(*[16]byte)(record[24:]) = a.Src.As16(), a.Dst.As16()
		zone := copy(record[40:], cmp.Or(a.Src.Zone(), a.Dst.Zone()))
		record[7] |= flagIPv6 | byte(zone<<zoneShift)
	} else {
		*(*[4]byte)(record[8:]), *(*[4]byte)(record[12:]) = a.Src.As4(), a.Dst.As4()
	}
	n, charge := size(record[7], len(payload))
	if r.Free() < charge {
		return false
	}
	binary.BigEndian.PutUint16(record[0:], from.Port())
	binary.BigEndian.PutUint16(record[2:], uint16(len(payload)))
	binary.BigEndian.PutUint16(record[4:], uint16(a.Iface))
	record[6] = a.TTL
	tail := r.Tail()
	r.WriteAt(tail, record[:n])
	r.WriteAt(tail+uint64(n), payload)
	// A padded record may end in a chunk without any of its bytes. Writing the last byte allocates
	// that chunk.
	end := tail + uint64(charge)
	if n+len(payload) < minCharge {
		r.WriteAt(end-1, record[:1])
	}
	r.Commit(end)
	return true
}

// zoned adds the zone to an address if the address is link-local.
func zoned(a netip.Addr, zone string) netip.Addr {
	if a.IsLinkLocalUnicast() {
		return a.WithZone(zone)
	}
	return a
}

// Received is the metadata of a datagram.
type Received struct {
	From netip.AddrPort
	To   netip.Addr
	Len  int // length of the payload in bytes; may exceed the caller's buffer
	// Iface is the interface on which the datagram arrived. TTL is its remaining time to live.
	Iface int
	TTL   uint8
	// Checked means that the datagram's checksum is known to be correct.
	Checked bool
}

// Dequeue removes the oldest datagram of a socket's ring and copies its payload to p. It discards
// the part that does not fit. It returns false if the ring is empty. The ring's consumer calls it,
// which may be a goroutine other than the socket's owner.
func Dequeue(r *buffer.Ring, p []byte) (Received, bool) {
	if r.Len() == 0 {
		return Received{}, false
	}
	end := r.Head()
	var record [recordLen]byte
	r.Read(record[:headLen+2*4])
	n := int(binary.BigEndian.Uint16(record[2:]))
	length, charge := size(record[7], n)
	from, to := netip.AddrFrom4([4]byte(record[8:])), netip.AddrFrom4([4]byte(record[12:]))
	if record[7]&flagIPv6 != 0 {
		r.Read(record[headLen+2*4 : length])
		zone := string(record[40:length])
		from = zoned(netip.AddrFrom16([16]byte(record[8:])), zone)
		to = zoned(netip.AddrFrom16([16]byte(record[24:])), zone)
	}
	r.Read(p[:min(n, len(p))])
	r.Release(end + uint64(charge))
	return Received{
		From: netip.AddrPortFrom(from, binary.BigEndian.Uint16(record[0:])),
		To:   to, Len: n, Iface: int(binary.BigEndian.Uint16(record[4:])), TTL: record[6],
		Checked: record[7]&flagChecked != 0,
	}, true
}
