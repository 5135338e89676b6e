package rcp

import "github.com/tidepool-net/tidepool/internal/buffer"

// assembler converts a peer's packets to its stream. It keeps packets that arrive out of order or
// do not fit in the reader's buffer, at most Config.Width of them in all.
type assembler struct {
	rx    *buffer.Ring // the peer's stream; the reader is the consumer
	next  uint64       // lowest packet that is not in rx
	slots []slot       // packets by their number modulo the number of slots
	held  int          // number of slots in use

	fin      uint64 // number of the FIN, valid if hasFIN is set
	hasFIN   bool
	finished bool // everything before the FIN is in rx
	// discard makes the assembler acknowledge and discard the stream, because the reader has
	// closed.
	discard bool
}

type slot struct {
	taken bool
	data  []byte // memory that later packets reuse
}

func newAssembler(cfg *Config) assembler {
	return assembler{rx: buffer.NewRing(cfg.RecvBuffer), slots: make([]slot, cfg.Width)}
}

func (a *assembler) slot(seq uint64) *slot { return &a.slots[seq%uint64(len(a.slots))] }

// assemble processes a DAT or a FIN.
func (a *assembler) assemble(seq uint64, p *Packet) Verdict {
	switch {
	case seq < a.next:
		return Duplicate
	case a.hasFIN && seq == a.fin && p.Type == FIN:
		return Duplicate
	case a.hasFIN && seq >= a.fin:
		return BehindFIN
	case seq >= a.next+uint64(len(a.slots)):
		return OutsideFence
	case a.slot(seq).taken:
		return Duplicate
	case p.Type == FIN && (a.hasFIN || a.beyond(seq)):
		return BehindFIN
	}
	if p.Type == FIN {
		a.hasFIN, a.fin = true, seq
	} else if seq == a.next && a.store(p.Data) {
		a.next++
	} else {
		s := a.slot(seq)
		s.taken, s.data = true, append(s.data[:0], p.Data...)
		a.held++
	}
	a.pull()
	return Accepted
}

// beyond reports whether a packet after seq was received.
func (a *assembler) beyond(seq uint64) bool {
	if a.held == 0 {
		return false
	}
	for n := seq + 1; n < a.next+uint64(len(a.slots)); n++ {
		if a.slot(n).taken {
			return true
		}
	}
	return false
}

// store appends the next packet's bytes to the reader's ring. It returns false if there is no room.
func (a *assembler) store(b []byte) bool {
	if a.discard {
		return true
	}
	if a.rx.Free() < len(b) {
		return false
	}
	a.rx.Write(b)
	return true
}

// pull moves contiguous packets to the reader's ring while they fit, and returns the lowest packet
// that is not in the ring.
func (a *assembler) pull() uint64 {
	for a.held > 0 {
		s := a.slot(a.next)
		if !s.taken || !a.store(s.data) {
			break
		}
		s.taken = false
		a.held--
		a.next++
	}
	if a.hasFIN && a.next == a.fin {
		a.next++
		a.finished = true
		clear(a.slots) // no packet follows a FIN
	}
	return a.next
}

// has reports whether packet next+i was received.
func (a *assembler) has(i int) bool {
	seq := a.next + uint64(i)
	return a.held > 0 && a.slot(seq).taken || a.hasFIN && seq == a.fin
}

// fill sets the bits of the received packets in the fence.
func (a *assembler) fill(m Bitmap) {
	clear(m)
	if a.held == 0 && !a.hasFIN || a.finished {
		return
	}
	for i := range min(len(a.slots), m.Len()) {
		if a.has(i) {
			m.Set(i)
		}
	}
}
