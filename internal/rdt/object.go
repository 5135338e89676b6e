package rdt

import "github.com/tidepool-net/tidepool/internal/clock"

// Completion is the end of an object.
type Completion struct {
	Stream uint16
	// Data is the object, the caller's from now on. It is nil if Err is set.
	Data []byte
	// Began is when the first of it arrived; never: nothing did.
	Began clock.Time
	// At is when the last of it arrived; with Config.InOrder, the last of what was sent
	// before its end.
	At clock.Time
	// Err is nil, or why there is no object: ErrAbsent, ErrMalformed, ErrTooLarge,
	// ErrSilent.
	Err error
}

// object is one that is being put together. Each sequence number is taken once, so the
// chunks of an honest sender do not overlap, and the object is there when as many bytes
// have come as it has. A sender who lets them overlap harms his own object alone.
type object struct {
	pages []*page    // nil: nothing of it has come
	end   int        // of the last byte that has come
	got   int        // bytes that have come
	size  int        // known when sized is set
	last  uint32     // the highest sequence number of it
	began clock.Time // when the first of it came; never: nothing has
	sized bool
	whole bool // complete, and perhaps held back
	ended bool // told, or about to be
}

// accept takes what an acceptable packet carries into its object.
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

// finish learns the object's size.
func (o *object) finish(size int) Drop {
	if o.sized || size < o.end || size < o.got {
		return DropOffset
	}
	o.size, o.sized = size, true
	return dropNone
}

// store copies a chunk to its place.
func (r *Receiver) store(o *object, p *packet) Drop {
	payload := p.payload
	if p.state&stateSqueezed != 0 {
		var ok bool
		if payload, ok = r.expander.expand(payload, r.cfg.Payload); !ok {
			return DropSqueezed
		}
	}
	end := int(p.offset) + len(payload)
	// Of an object's chunks at most a window can be missing: this bounds what a packet
	// makes the receiver allocate.
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
