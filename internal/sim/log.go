package sim

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// Event is an entry of a world's log: packets that a host sent, or that arrived at one.
type Event struct {
	// Time is the world's. A line has how long the world has existed.
	Time clock.Time
	// Wire is the direction of a wire: "left:if0>right:if0".
	Wire string
	// Arrived is set for arrivals, not for transmissions.
	Arrived bool
	// Packets were sent back to back, all of the first one's size but the last; what
	// arrives, arrives alone. Bytes are those of all.
	Packets, Bytes int
	// Head is the first one's headers, whose checksums stand for the rest: up to 40
	// bytes, lent for the call.
	Head []byte
}

// Append appends the event as a line, without its end: when, where, what, and the bytes
// that Hash digests.
//
//	0.040123456 left:if0>right:if0 sent 4 5600 IP 10.0.0.1.33000 > … length 1360 45000578…
func (e *Event) Append(b []byte) []byte {
	b = appendSeconds(b, e.Time)
	b = append(append(append(b, ' '), e.Wire...), ' ')
	if e.Arrived {
		b = append(b, "arrived "...)
	} else {
		b = append(b, "sent "...)
	}
	b = strconv.AppendInt(b, int64(e.Packets), 10)
	b = strconv.AppendInt(append(b, ' '), int64(e.Bytes), 10)
	return fmt.Appendf(capture.Describe(append(b, ' '), e.Head), " %x", e.Head)
}

// appendSeconds writes how long a world had existed at an instant, to the nanosecond.
func appendSeconds(b []byte, at clock.Time) []byte {
	const second, digits = 1_000_000_000, 9
	ns := uint64(max(0, at-origin))
	b = append(strconv.AppendUint(b, ns/second, 10), '.')
	end := len(b) + digits
	b = append(b, "000000000"...)
	for at, rest := end-1, ns%second; rest > 0; at, rest = at-1, rest/10 {
		b[at] += byte(rest % 10)
	}
	return b
}

// Hash returns a digest of everything that was sent and that arrived so far, and
// when. Equal hashes mean that two runs went the same way.
func (w *World) Hash() uint64 { return w.log.sum }

// Log has f called with each event as it happens, in order: what Hash digests, so that
// two runs whose hashes differ have logs that differ, first where they went apart. The
// event is lent for the call. Nil ends it.
func (w *World) Log(f func(*Event)) { w.log.watch = f }

// loggedBytes is how much of a packet goes into the world's hash: the headers,
// whose checksum stands for the rest.
const loggedBytes = 40

// journal is the digest of a run: each entry is mixed into the sum.
type journal struct {
	sum   uint64
	watch func(*Event)
	shown Event // what watch is lent
}

func (j *journal) sent(now clock.Time, v *wire, t *buffer.Train) {
	head := t.Pieces[0]
	head = head[:min(len(head), loggedBytes)]
	j.note(now, v.id<<1, t.Bytes, head)
	if j.watch != nil {
		j.shown = Event{Time: now, Wire: v.name, Packets: t.Count, Bytes: t.Bytes, Head: head}
		j.watch(&j.shown)
	}
}

func (j *journal) arrived(now clock.Time, v *wire, data []byte) {
	head := data[:min(len(data), loggedBytes)]
	j.note(now, v.id<<1|1, len(data), head)
	if j.watch != nil {
		j.shown = Event{
			Time: now, Wire: v.name, Arrived: true, Packets: 1, Bytes: len(data), Head: head,
		}
		j.watch(&j.shown)
	}
}

// note adds an entry to the hash: time, place, length, and headers.
func (j *journal) note(now clock.Time, where uint64, size int, head []byte) {
	place := where<<32 | uint64(size)
	if len(head) < loggedBytes {
		h := mix(j.sum^uint64(now), place)
		for ; len(head) >= 8; head = head[8:] {
			h = mix(h, binary.LittleEndian.Uint64(head))
		}
		j.sum = h
		return
	}
	// All that an entry has in three products, of which none waits for another.
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(head[at:]) }
	h := fold(word(0)^0xa0761d6478bd642f, word(8)^0xe7037ed1a0b428db) ^
		fold(word(16)^0x8ebc6af09c88c6e3, word(24)^0x589965cc75374cc3) ^
		fold(word(32)^0x1d8e4e27c47d124f, place^0xeb44accab455d165)
	j.sum = mix(j.sum^uint64(now), h)
}

// fold multiplies two words into one, on all of whose bits all of theirs have an effect.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// mix is a step of a multiplicative hash: a difference anywhere in either word
// spreads over the whole.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}
