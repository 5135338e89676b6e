package rcp

import "github.com/tidepool-net/tidepool/internal/buffer"

// assembler turns the packets of a peer into his stream. It keeps what has arrived
// early, Config.Width packets at the most, and what the reader has no room for.
type assembler struct {
	rx    *buffer.Ring // the reader consumes it
	next  uint64       // the lowest packet that is not in rx
	slots []slot       // packet n is in slot n modulo their number
	held  int          // how many slots are taken

	fin      uint64 // the number of the FIN, once it is known
	hasFIN   bool
	finished bool // everything before the FIN is in rx
	// discard has the stream acknowledged and thrown away: the reader has gone.
	discard bool
}

type slot struct {
	taken bool
	data  []byte // kept for the next packet here
}

func newAssembler(cfg *Config) assembler {
	return assembler{rx: buffer.NewRing(cfg.RecvBuffer), slots: make([]slot, cfg.Width)}
}

func (a *assembler) slot(seq uint64) *slot { return &a.slots[seq%uint64(len(a.slots))] }

// assemble takes a DAT or a FIN.
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

// beyond reports whether a packet behind seq has arrived.
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

// store puts the next packet's bytes where the reader finds them; false: no room.
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

// pull moves what has become contiguous to the reader, as far as he has room, and returns
// the lowest packet that he does not have.
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
		clear(a.slots) // nothing comes behind a FIN
	}
	return a.next
}

// has reports whether the packet that is i behind next is here.
func (a *assembler) has(i int) bool {
	seq := a.next + uint64(i)
	return a.held > 0 && a.slot(seq).taken || a.hasFIN && seq == a.fin
}

// fill sets the bits of the packets that are in the fence.
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
