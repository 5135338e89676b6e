package rdt

import "github.com/tidepool-net/tidepool/internal/clock"

// Completion is the result of an object.
type Completion struct {
	Stream uint16
	// Data is the content of the object. It belongs to the caller. It is nil if Err is set.
	Data []byte
	// Began is when the first packet of the object arrived, or Never.
	Began clock.Time
	// At is when the object's last packet arrived. With Config.InOrder it is when all packets up to
	// the object's end had arrived.
	At clock.Time
	// Err is nil, or says why the object failed: ErrAbsent, ErrMalformed, ErrTooLarge, ErrSilent.
	Err error
}

// object is an incomplete object. Each sequence number is used once, so the chunks of a correct
// sender do not overlap, and the number of received bytes shows whether the object is complete. A
// sender with overlapping chunks corrupts only its own object.
type object struct {
	pages []*page    // a page is nil if none of its bytes has arrived
	end   int        // offset after the last received byte
	got   int        // number of received bytes
	size  int        // size of the object; valid if sized is set
	last  uint32     // highest sequence number of the object's packets
	began clock.Time // when the object's first packet arrived, or Never
	sized bool
	whole bool // the object is complete, but may be held back
	ended bool // the object has a Completion
}

// accept adds a valid packet to its object.
func (r *Receiver) accept(now clock.Time, p *packet) Drop {
	o := r.objects[p.stream]
	switch {
	case o == nil:
		return DropStream
	case o.whole || o.ended:
		return DropFinished
	case p.state&stateAbsent != 0:
		r.end(now, p.stream, o, ErrAbsent)
		return dropNone
	}
	if o.began == clock.Never {
		o.began, o.last = now, p.sequence
	}
	if int32(p.sequence-o.last) > 0 {
		o.last = p.sequence
	}
	var drop Drop
	if p.state&stateEnd != 0 {
		drop = o.finish(int(p.offset))
	} else {
		drop = r.store(o, p)
	}
	switch {
	case drop == DropMemory:
		r.end(now, p.stream, o, ErrTooLarge)
	case drop != dropNone:
		r.end(now, p.stream, o, ErrMalformed)
	case o.sized && o.got == o.size:
		o.whole = true
		r.whole++
	}
	return drop
}

func (o *object) finish(size int) Drop {
	if o.sized || size < o.end || size < o.got {
		return DropOffset
	}
	o.size, o.sized = size, true
	return dropNone
}

// store copies the bytes of a chunk into the object.
func (r *Receiver) store(o *object, p *packet) Drop {
	payload := p.payload
	if p.state&stateCompressed != 0 {
		var ok bool
		if payload, ok = r.decompressor.expand(payload, r.cfg.Payload); !ok {
			return DropCompression
		}
	}
	end := int(p.offset) + len(payload)
	// At most one window of an object's chunks can be missing. This limits the memory that a packet
	// can allocate.
	if o.sized && (end > o.size || o.got+len(payload) > o.size) ||
		int(p.offset) > o.got+r.cfg.Window*r.cfg.Payload {
		return DropOffset
	}
	if grown := end - o.end; grown > 0 {
		if r.held+grown > r.cfg.MaxBytes {
			return DropMemory
		}
		r.held += grown
		o.end = end
	}
	o.got += len(payload)
	r.pages.put(o, int(p.offset), payload)
	return dropNone
}
