package tcp

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// initialSequence returns the initial sequence number of a new connection (RFC 9293 §3.4.1): ISN =
// M + F(addresses, ports, secret), where M is a clock of 4 µs ticks.
func initialSequence(secret *[16]byte, now clock.Time, t *Tuple) uint32 {
	return uint32(now/4000) + uint32(keyed(secret, 'i', t))
}

// keyed returns a keyed hash of a tuple. RFC 9293 §3.4.1 requires one that outsiders cannot
// compute. use names the purpose, so that two purposes never share a hash.
func keyed(secret *[16]byte, use byte, t *Tuple) uint64 {
	var b [64]byte
	return digest(keying(b[:0], secret, use, t))
}

// keyedAt is keyed with a time as additional input.
func keyedAt(secret *[16]byte, use byte, t *Tuple, at uint32) uint64 {
	var b [64]byte
	return digest(binary.BigEndian.AppendUint32(keying(b[:0], secret, use, t), at))
}

// keying appends the hash input to b. An invalid address, which means any address, counts as zero.
func keying(b []byte, secret *[16]byte, use byte, t *Tuple) []byte {
	b = append(append(b, secret[:]...), use)
	for _, a := range [...]netip.Addr{t.LocalAddr, t.RemoteAddr} {
		bytes, size := a.As16(), 4
		if t.LocalAddr.Is6() {
			size = 16
		}
		b = append(b, bytes[16-size:]...)
	}
	b = binary.BigEndian.AppendUint16(b, t.LocalPort)
	return binary.BigEndian.AppendUint16(b, t.RemotePort)
}

func digest(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

// RFC 6335 §6 reserves these ports for dynamic use.
const (
	firstPort = 49152
	numPorts  = 65536 - firstPort
)

// ports chooses local ports by the double-hash algorithm of RFC 6056 §3.3.4: a secret offset for
// each destination, and counters that several destinations share.
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
