package sight

const (
	// maxPileBytes is how many bytes of packets a pile may have.
	maxPileBytes = 4 << 20
	// keptPileBytes is how much memory an idle pile keeps.
	keptPileBytes = 1 << 20
)

// Pile is packets that wait for their observer, those of one turn or of some short ones.
type Pile struct {
	List []Sight
	data []byte
}

// Bytes are what was kept of a packet of the pile.
func (p *Pile) Bytes(s *Sight) []byte { return p.data[s.begin:s.end] }

// full reports whether a pile has no room for so many bytes more.
func (p *Pile) full(bytes int) bool {
	return len(p.List) > 0 && len(p.data)+len(p.List)*sightBytes+bytes > maxPileBytes
}

// add appends a copy of another pile.
func (p *Pile) add(other Pile) {
	at := len(p.data)
	p.data = append(p.data, other.data...)
	for _, one := range other.List {
		one.begin, one.end = one.begin+at, one.end+at
		p.List = append(p.List, one)
	}
}

// emptied is a pile without its packets, and without more memory than it may keep.
func (p *Pile) emptied() Pile {
	if cap(p.data) > keptPileBytes && len(p.data) < keptPileBytes/2 {
		return Pile{List: p.List[:0]}
	}
	return Pile{List: p.List[:0], data: p.data[:0]}
}
