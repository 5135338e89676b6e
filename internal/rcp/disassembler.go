package rcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// maxCut is the maximum number of unacknowledged packets. Further data stays in the ring as bytes.
const maxCut = 2 * MaxWidth

// disassembler converts a stream to packets, and keeps them until they are acknowledged. Their
// bytes stay in tx.
type disassembler struct {
	tx   *buffer.Ring // the writer is the producer
	size int
	una  uint64 // lowest packet that is not acknowledged
	nxt  uint64 // number after the highest packet that was sent
	end  uint64 // number after the highest packet that exists
	off  uint64 // stream offset after the last packet

	// records describes the packets from una to end. Packet n has the index n modulo the length of
	// records, which is a power of two.
	records []record
	timer   timer

	finWanted, finCut bool
}

// record describes a packet.
type record struct {
	off   uint64
	sent  clock.Time    // time of the last transmission; Never: not sent
	wait  time.Duration // timer after which the packet is retransmitted
	size  uint16
	fin   bool
	acked bool // the peer has the packet
	again bool // the packet was retransmitted
}

func newDisassembler(cfg *Config) disassembler {
	return disassembler{
		tx: buffer.NewRing(cfg.SendBuffer), size: cfg.PacketSize,
		records: make([]record, 16), timer: newTimer(cfg),
	}
}

func (d *disassembler) record(seq uint64) *record {
	return &d.records[seq&uint64(len(d.records)-1)]
}

// push adds a packet. It returns false if there are too many.
func (d *disassembler) push(r record) bool {
	n := len(d.records)
	if d.end-d.una == uint64(n) {
		if n == maxCut {
			return false
		}
		more := make([]record, 2*n)
		for seq := d.una; seq < d.end; seq++ {
			more[seq&uint64(2*n-1)] = *d.record(seq)
		}
		d.records = more
	}
	*d.record(d.end) = r
	d.end++
	return true
}

// open adds the empty packet that opens a connection.
func (d *disassembler) open() { d.push(record{}) }

// cut makes packets of all written data, as the document does every tick, and adds the FIN after
// the last.
func (d *disassembler) cut() {
	tail := d.tx.Tail()
	for d.off < tail && !d.finCut {
		n := min(uint64(d.size), tail-d.off)
		if !d.push(record{off: d.off, size: uint16(n)}) {
			return
		}
		d.off += n
	}
	if d.finWanted && !d.finCut {
		d.finCut = d.push(record{off: d.off, fin: true})
	}
}

// done reports whether everything is acknowledged, including the FIN.
func (d *disassembler) done() bool { return d.finCut && d.una == d.end }

// acknowledge processes an ACK.
func (d *disassembler) acknowledge(now clock.Time, seq uint64, m Bitmap) Verdict {
	switch {
	case seq > d.nxt:
		return UnsentACK
	case seq < d.una:
		return OldACK
	}
	for ; d.una < seq; d.una++ {
		r := d.record(d.una)
		d.arrived(now, r)
		d.tx.Release(r.off + uint64(r.size))
	}
	for i := range min(m.Len(), int(d.nxt-d.una)) {
		if m.Has(i) {
			d.arrived(now, d.record(d.una+uint64(i)))
		}
	}
	return Accepted
}

// arrived records that the peer has a packet.
func (d *disassembler) arrived(now clock.Time, r *record) {
	if r.acked {
		return
	}
	r.acked = true
	if !r.again {
		d.timer.sample(now.Sub(r.sent))
	}
}

// due reports whether this round must send a packet.
func (d *disassembler) due(now clock.Time, r *record, timed bool) bool {
	return !r.acked && (!timed || r.sent == clock.Never || r.sent.Add(r.wait).Due(now))
}

// recordSent records that a packet is sent.
func (d *disassembler) recordSent(now clock.Time, seq uint64, r *record) {
	if r.sent == clock.Never {
		r.wait = d.timer.rto
	} else {
		r.again = true
		r.wait = d.timer.backoff(r.wait)
	}
	r.sent = now
	d.nxt = max(d.nxt, seq+1)
}
