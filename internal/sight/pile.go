package sight

// Bounds of a pile: how far an observer may fall behind. What comes while its pile is full is
// counted and not kept.
const (
	maxPile = 1 << 15
	// MaxPileBytes is how many bytes of packets may wait.
	MaxPileBytes = 16 << 20
	// keptPileBytes is how much memory an idle pile keeps.
	keptPileBytes = 1 << 20
)

// Pile is packets that wait for their observer.
type Pile struct {
	List []Sight
	data []byte
	gap  uint64 // missed since the last of the list
}

// Bytes are what was kept of a packet of the pile.
func (p *Pile) Bytes(s *Sight) []byte { return p.data[s.begin:s.end] }

// full reports whether a pile has no room for so many bytes more.
func (p *Pile) full(bytes int) bool {
	return len(p.List) >= maxPile || len(p.data)+bytes > MaxPileBytes
}

// fullWith reports whether a pile has packets and no room for those of another.
func (p *Pile) fullWith(other *Pile) bool {
	return len(p.List) > 0 && (len(p.List)+len(other.List) > maxPile ||
		len(p.data)+len(other.data) > MaxPileBytes)
}

// empty is a pile without its packets, and without more memory than it may keep.
func (p *Pile) empty() Pile {
	if cap(p.data) > keptPileBytes && len(p.data) < keptPileBytes/2 {
		return Pile{List: p.List[:0]}
	}
	return Pile{List: p.List[:0], data: p.data[:0]}
}
