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
// addresses, of the same protocol, that may be in flight. A counter runs through all 65,536 values
// of IPv4, or 2³² of IPv6, so a value repeats after as many datagrams. The identification is the
// counter's value in a permutation that depends on the addresses and the protocol, so observed
// values do not predict others (RFC 7739 §5).
type Identifications struct {
	secret   [16]byte
	counters [identifications]uint32
	cache    [cacheSize]sequence
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

// Next returns the identification of another datagram. For IPv6 it is never 0.
func (x *Identifications) Next(src, dst netip.Addr, protocol uint8) uint32 {
	// Consecutive datagrams have few destinations, so their sequences are cached, as in Table.Hop.
	from, to := src.As16(), dst.As16()
	q := &x.cache[(from[15]^to[15]^to[14]^to[13]^protocol)%cacheSize]
	if !q.known || q.src != src || q.dst != dst || q.protocol != protocol {
		*q = x.sequence(src, dst, protocol)
	}
	counter := &x.counters[q.counter]
	*counter++
	if !dst.Is6() {
		return permute(*counter&0xffff, 8, q.k0, q.k1)
	}
	return max(permute(*counter, 16, q.k0, q.k1), 1)
}

func (x *Identifications) sequence(src, dst netip.Addr, protocol uint8) sequence {
	b := append(make([]byte, 0, 64), x.secret[:]...)
	b = append(b, 'f')
	for _, a := range [...]netip.Addr{src, dst} {
		if a.Is6() {
			bytes := a.As16()
			b = append(b, bytes[:]...)
		} else {
			bytes := a.As4()
			b = append(b, bytes[:]...)
		}
	}
	key := sha256.Sum256(append(b, protocol))
	return sequence{
		src: src, dst: dst, protocol: protocol, known: true, counter: key[0] % identifications,
		k0: binary.BigEndian.Uint64(key[8:]), k1: binary.BigEndian.Uint64(key[16:]),
	}
}

// permute is a bijection of numbers with 2*half bits: a Feistel network of eight rounds.
func permute(v uint32, half uint, k0, k1 uint64) uint32 {
	left, right := v>>(half&31), v&(1<<(half&31)-1)
	for range 4 {
		left ^= scramble(right, k0, half)
		right ^= scramble(left, k1, half)
		k0, k1 = k0*k1|1, k1^k0>>17
	}
	return left<<(half&31) | right
}

// scramble is the function of one round: it multiplies by the key and mixes the bits.
func scramble(v uint32, key uint64, half uint) uint32 {
	x := (uint64(v) + key) * (key>>32 | 1)
	x ^= x >> 29
	return uint32(x * 0x9e3779b97f4a7c15 >> ((64 - half) & 63))
}
