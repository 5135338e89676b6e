package tcp

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// initialSequence returns the initial sequence number of a new connection, RFC 9293 §3.4.1:
// ISN = M + F(addresses, ports, secret), M a clock of 4 µs ticks.
func initialSequence(secret *[16]byte, now clock.Time, t *Tuple) uint32 {
	return uint32(now/4000) + uint32(keyed(secret, 'i', t))
}

// keyed is the keyed hash for sequence numbers and ports. RFC 9293 §3.4.1 requires one that an
// outsider cannot compute; use separates the two.
func keyed(secret *[16]byte, use byte, t *Tuple) uint64 {
	b := keying(secret, use, t)
	return digest(b[:29])
}

// keyedAt is keyed with a time in the hash.
func keyedAt(secret *[16]byte, use byte, t *Tuple, at uint32) uint64 {
	b := keying(secret, use, t)
	binary.BigEndian.PutUint32(b[29:], at)
	return digest(b[:])
}

// keying returns the hash input, with room for a time at its end.
func keying(secret *[16]byte, use byte, t *Tuple) (b [33]byte) {
	copy(b[:], secret[:])
	b[16] = use
	if t.LocalAddr.Is4() {
		*(*[4]byte)(b[17:]) = t.LocalAddr.As4()
	}
	if t.RemoteAddr.Is4() { // invalid: any
		*(*[4]byte)(b[21:]) = t.RemoteAddr.As4()
	}
	binary.BigEndian.PutUint16(b[25:], t.LocalPort)
	binary.BigEndian.PutUint16(b[27:], t.RemotePort)
	return b
}

func digest(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

// The dynamic ports of RFC 6335 §6.
const (
	firstPort = 49152
	numPorts  = 65536 - firstPort
)

// ports chooses local ports by the double-hash algorithm of RFC 6056 §3.3.4: a
// secret offset for each destination, and a counter that a few share.
type ports struct {
	secret   [16]byte
	counters [64]uint16
}

// next returns a free port. It tries each port once.
func (p *ports) next(t Tuple, free func(Tuple) bool) (uint16, bool) {
	t.LocalPort = 0
	offset := keyed(&p.secret, 'p', &t)
	counter := &p.counters[keyed(&p.secret, 'c', &t)%uint64(len(p.counters))]
	for range numPorts {
		t.LocalPort = uint16(firstPort + (offset+uint64(*counter))%numPorts)
		*counter++
		if free(t) {
			return t.LocalPort, true
		}
	}
	return 0, false
}
