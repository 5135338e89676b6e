package playground

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// sum hashes the packets that the interfaces of a node have sent, with their times. Packets of one
// interface are hashed in their order, so the order of packets on different links at the same
// instant does not matter.
type sum struct {
	mu             sync.Mutex
	hashes         []uint64 // indexed by interface
	packets, bytes uint64
}

func newSum(ifaces int) *sum { return &sum{hashes: make([]uint64, ifaces)} }

// mix adds a word to a hash. The hash detects differences, but is not cryptographic: computing the
// SHA-256 of all payload would take longer than running the network.
func mix(h, word uint64) uint64 {
	hi, lo := bits.Mul64(h^word^0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9)
	return bits.RotateLeft64(h, 23) ^ hi ^ lo
}

func (s *sum) add(iface int, at int64, pieces [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.hashes) <= iface { // a reload adds interfaces
		s.hashes = append(s.hashes, 0)
	}
	h, size := mix(s.hashes[iface], uint64(at)), 0
	for _, p := range pieces {
		size += len(p)
		for ; len(p) >= 8; p = p[8:] {
			h = mix(h, binary.LittleEndian.Uint64(p))
		}
		for _, b := range p {
			h = mix(h, uint64(b))
		}
	}
	s.hashes[iface] = mix(h, uint64(size))
	s.packets, s.bytes = s.packets+1, s.bytes+uint64(size)
}

func (s *sum) total() (packets, bytes, hash uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hashes {
		hash = mix(hash, h)
	}
	return s.packets, s.bytes, hash
}
