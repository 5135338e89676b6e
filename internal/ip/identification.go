package ip

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// identifications is the number of counters. Several destinations may share one.
const identifications = 64

// Identifications chooses the identification of datagrams that may be fragmented. RFC 6864 §4.3:
// the identification of a datagram that is not atomic must differ from all others between the same
// addresses, of the same protocol, that may be in flight. A counter runs through all 65,536 values,
// so a value repeats after as many datagrams. The identification is the counter's value in a
// permutation that depends on the addresses and the protocol, so observed values do not predict
// others.
type Identifications struct {
	secret   [16]byte
	counters [identifications]uint16
	memo     [memoSize]sequence
}

// sequence is the permutation of two addresses and a protocol.
type sequence struct {
	src, dst netip.Addr
	protocol uint8
	known    bool
	counter  uint8
	k0, k1   uint64
}

// NewIdentifications returns a source with this secret key.
func NewIdentifications(secret [16]byte) *Identifications {
	return &Identifications{secret: secret}
}

// Next returns the identification of another datagram.
func (x *Identifications) Next(src, dst netip.Addr, protocol uint8) uint16 {
	// Consecutive datagrams have few destinations, as for Table.Hop.
	from, to := as4(src), as4(dst)
	q := &x.memo[(from[3]^to[3]^to[2]^to[1]^protocol)%memoSize]
	if !q.known || q.src != src || q.dst != dst || q.protocol != protocol {
		*q = x.sequence(src, dst, protocol)
	}
	counter := &x.counters[q.counter]
	*counter++
	return permute(*counter, q.k0, q.k1)
}

func (x *Identifications) sequence(src, dst netip.Addr, protocol uint8) sequence {
	var b [26]byte
	from, to := src.As4(), dst.As4()
	copy(b[:], x.secret[:])
	b[16] = 'f'
	copy(b[17:], from[:])
	copy(b[21:], to[:])
	b[25] = protocol
	key := sha256.Sum256(b[:])
	return sequence{
		src: src, dst: dst, protocol: protocol, known: true, counter: key[0] % identifications,
		k0: binary.BigEndian.Uint64(key[8:]), k1: binary.BigEndian.Uint64(key[16:]),
	}
}

// permute is a bijection of 16-bit values: a Feistel network of eight rounds.
func permute(v uint16, k0, k1 uint64) uint16 {
	left, right := uint8(v>>8), uint8(v)
	for range 4 {
		left ^= scramble(right, k0)
		right ^= scramble(left, k1)
		k0, k1 = k0*k1|1, k1^k0>>17
	}
	return uint16(left)<<8 | uint16(right)
}

// scramble is the function of one round: it multiplies by the key and mixes the bits.
func scramble(v uint8, key uint64) uint8 {
	x := (uint64(v) + key) * (key>>32 | 1)
	x ^= x >> 29
	return uint8(x * 0x9e3779b97f4a7c15 >> 56)
}
