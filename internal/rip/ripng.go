package rip

import (
	"encoding/binary"
	"net/netip"
)

const (
	versionNG = 1
	// nextHopMetric marks an entry that has the next hop of those after it (RFC 2080 §2.1.1).
	nextHopMetric = 0xff
)

// entryNG is one entry of a RIPng message (RFC 2080 §2.1): 16 bytes of address, then the tag, the
// prefix length and the metric. Its 20 bytes are as long as an entry of RIP version 2.
type entryNG struct {
	addr   netip.Addr
	tag    uint16
	bits   int
	metric uint8
}

func parseEntryNG(b []byte) entryNG {
	return entryNG{
		addr: netip.AddrFrom16([16]byte(b)), tag: binary.BigEndian.Uint16(b[16:]),
		bits: int(b[18]), metric: b[19],
	}
}

func (e *entryNG) append(b []byte) []byte {
	addr := e.addr.As16()
	b = binary.BigEndian.AppendUint16(append(b, addr[:]...), e.tag)
	return append(b, byte(e.bits), e.metric)
}

// appendEntriesNG appends routes to b. A next hop takes an entry before the routes through it. The
// unspecified address stands for the sender.
func appendEntriesNG(b []byte, entries []Entry) []byte {
	var hop netip.Addr
	for i := range entries {
		e := &entries[i]
		if e.NextHop != hop {
			hop = e.NextHop
			mark := entryNG{addr: netip.IPv6Unspecified(), metric: nextHopMetric}
			if hop.IsValid() {
				mark.addr = hop
			}
			b = mark.append(b)
		}
		w := entryNG{e.Prefix.Addr(), e.Tag, e.Prefix.Bits(), uint8(e.Cost)}
		b = w.append(b)
	}
	return b
}

// decode returns the route of an entry, or the reason why RFC 2080 §2.4.2 ignores the entry.
func (e *entryNG) decode() (Entry, Refusal) {
	if e.bits > 128 {
		return Entry{}, RefusedMask
	}
	prefix := netip.PrefixFrom(e.addr, e.bits).Masked()
	switch {
	case !isDestination(prefix):
		return Entry{}, RefusedMartian
	case e.metric < 1 || e.metric > Infinity:
		return Entry{}, RefusedMetric
	}
	return Entry{Prefix: prefix, Cost: uint32(e.metric), Tag: e.tag}, Accepted
}
