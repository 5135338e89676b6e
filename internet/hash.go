package internet

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"sync"
)

// packets has the digest of the packets that an interface sent.
type packets struct {
	mu           sync.Mutex
	hash         hash.Hash
	count, bytes int
}

func (p *packets) sum() (count, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count, p.bytes
}

func newPackets() *packets { return &packets{hash: sha256.New()} }

func (p *packets) add(at int64, pieces [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := 0
	for _, piece := range pieces {
		size += len(piece)
	}
	p.count, p.bytes = p.count+1, p.bytes+size
	var head [16]byte
	binary.BigEndian.PutUint64(head[:8], uint64(at))
	binary.BigEndian.PutUint64(head[8:], uint64(size))
	p.hash.Write(head[:])
	for _, piece := range pieces {
		p.hash.Write(piece)
	}
}

// Hash returns the SHA-256 of all packets that the interfaces of links have sent so far, with their
// times to the nanosecond. The packets of each interface are hashed in their order, so the order of
// packets on different links at the same instant does not matter.
func (w *World) Hash() string {
	sum := sha256.New()
	for _, l := range w.links {
		for i := range l.ends {
			p := l.ends[i].packets
			p.mu.Lock()
			sum.Write(p.hash.Sum(nil))
			p.mu.Unlock()
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
