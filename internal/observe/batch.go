package observe

const (
	maxBatchBytes = 4 << 20
	// keptBatchBytes is the maximum memory that an idle batch keeps.
	keptBatchBytes = 1 << 20
)

// Batch holds packets that wait for their observer: the packets of one iteration of the loop, or of
// several short iterations.
type Batch struct {
	List []Packet
	data []byte
}

// Bytes returns the captured bytes of a packet of the batch.
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

// emptied returns the batch without its packets. It also drops the batch's memory if that is too
// large.
func (p *Batch) emptied() Batch {
	if cap(p.data) > keptBatchBytes && len(p.data) < keptBatchBytes/2 {
		return Batch{List: p.List[:0]}
	}
	return Batch{List: p.List[:0], data: p.data[:0]}
}
