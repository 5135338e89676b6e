package observe

const (
	// maxBatchBytes is how many bytes of packets a batch may have.
	maxBatchBytes = 4 << 20
	// keptBatchBytes is how much memory an idle batch keeps.
	keptBatchBytes = 1 << 20
)

// Batch is packets that wait for their observer, those of one turn or of some short ones.
type Batch struct {
	List []Packet
	data []byte
}

// Bytes are what was kept of a packet of the batch.
func (p *Batch) Bytes(s *Packet) []byte { return p.data[s.begin:s.end] }

func (p *Batch) full(bytes int) bool {
	return len(p.List) > 0 && len(p.data)+len(p.List)*packetBytes+bytes > maxBatchBytes
}

func (p *Batch) add(other Batch) {
	at := len(p.data)
	p.data = append(p.data, other.data...)
	for _, one := range other.List {
		one.begin, one.end = one.begin+at, one.end+at
		p.List = append(p.List, one)
	}
}

// emptied is a batch without its packets, and without more memory than it may keep.
func (p *Batch) emptied() Batch {
	if cap(p.data) > keptBatchBytes && len(p.data) < keptBatchBytes/2 {
		return Batch{List: p.List[:0]}
	}
	return Batch{List: p.List[:0], data: p.data[:0]}
}
