package rdt

import (
	"fmt"
	"slices"
)

// chunk describes the contents of one packet: size bytes of an object from offset on, or the
// object's end.
type chunk struct {
	stream uint16
	state  state
	offset uint32
	size   uint32
}

// cursor is the position up to which an object was split into chunks.
type cursor struct {
	stream uint16
	at     int
}

type schedule struct {
	objects    [][]byte
	payload    int
	interleave bool
	queue      []cursor // objects that have not been sent completely
	turn       int
	requested  map[uint16]struct{} // numbers of all objects ever queued, at most MaxObjects
}

// add queues objects. It ignores objects that were queued before.
func (s *schedule) add(streams []uint16) error {
	for _, id := range streams {
		if _, ok := s.requested[id]; ok {
			continue
		}
		if len(s.requested) == MaxObjects {
			return fmt.Errorf("%w: more than %d objects in one flow", ErrObject, MaxObjects)
		}
		s.requested[id] = struct{}{}
		s.queue = append(s.queue, cursor{stream: id})
	}
	return nil
}

func (s *schedule) empty() bool { return len(s.queue) == 0 }

// next removes and returns the next chunk. The queue must not be empty.
func (s *schedule) next() chunk {
	if s.turn >= len(s.queue) {
		s.turn = 0
	}
	c := &s.queue[s.turn]
	object, ok := s.object(c.stream)
	k := chunk{stream: c.stream, offset: uint32(c.at)}
	if c.at < len(object) {
		k.size = uint32(min(s.payload, len(object)-c.at))
		c.at += int(k.size)
		if s.interleave {
			s.turn++
		}
		return k
	}
	k.state = stateEnd
	if !ok {
		k.state |= stateAbsent
	}
	s.queue = slices.Delete(s.queue, s.turn, s.turn+1)
	return k
}

func (s *schedule) object(stream uint16) ([]byte, bool) {
	if int(stream) >= len(s.objects) || s.objects[stream] == nil {
		return nil, false
	}
	return s.objects[stream], true
}

func (s *schedule) bytes(k *chunk) []byte {
	if k.size == 0 {
		return nil
	}
	return s.objects[k.stream][k.offset : k.offset+k.size]
}
