package buffer

import "slices"

// Range is the half-open interval of stream offsets [Start, End).
type Range struct{ Start, End uint64 }

// Len returns the length of the range in bytes.
func (r Range) Len() uint64 { return r.End - r.Start }

// Ranges is an ordered set of disjoint, non-adjacent ranges. A receiver records in it which bytes
// arrived out of order. The zero value is empty and holds at most DefaultMaxRanges.
type Ranges struct {
	list []Range
	// Max limits the number of ranges, and so the memory that a peer can claim by sending every
	// other byte. Zero means DefaultMaxRanges.
	Max int
}

// DefaultMaxRanges is the limit of a Ranges whose Max is zero.
const DefaultMaxRanges = 1024

// Len returns the number of ranges.
func (s *Ranges) Len() int { return len(s.list) }

// At returns the i-th range in ascending order.
func (s *Ranges) At(i int) Range { return s.list[i] }

// Clear empties the set and frees its memory.
func (s *Ranges) Clear() { s.list = nil }

// search returns the index of the first range that ends at or after pos.
func (s *Ranges) search(pos uint64) int {
	i, _ := slices.BinarySearchFunc(s.list, pos, func(r Range, pos uint64) int {
		switch {
		case r.End < pos:
			return -1
		case r.End > pos:
			return 1
		}
		return 0
	})
	return i
}

// Add merges [start, end) into the set. It returns false and changes nothing if the set would then
// exceed Max ranges.
func (s *Ranges) Add(start, end uint64) bool {
	if start >= end {
		return true
	}
	i := s.search(start)
	j := i
	for j < len(s.list) && s.list[j].Start <= end {
		start = min(start, s.list[j].Start)
		end = max(end, s.list[j].End)
		j++
	}
	if i < j {
		s.list[i] = Range{start, end}
		s.list = slices.Delete(s.list, i+1, j)
		return true
	}
	limit := s.Max
	if limit == 0 {
		limit = DefaultMaxRanges
	}
	if len(s.list) >= limit {
		return false
	}
	s.list = slices.Insert(s.list, i, Range{start, end})
	return true
}

// RemoveBefore removes everything before pos from the set.
func (s *Ranges) RemoveBefore(pos uint64) {
	i := 0
	for i < len(s.list) && s.list[i].End <= pos {
		i++
	}
	s.list = slices.Delete(s.list, 0, i)
	if len(s.list) > 0 && s.list[0].Start < pos {
		s.list[0].Start = pos
	}
}

// Find returns the range that contains pos.
func (s *Ranges) Find(pos uint64) (Range, bool) {
	i := s.search(pos + 1)
	if i < len(s.list) && s.list[i].Start <= pos {
		return s.list[i], true
	}
	return Range{}, false
}

// Covers reports whether all of [start, end) is in the set.
func (s *Ranges) Covers(start, end uint64) bool {
	r, ok := s.Find(start)
	return start >= end || ok && end <= r.End
}

// Overlap returns the first part of [start, end) that is in the set.
func (s *Ranges) Overlap(start, end uint64) (Range, bool) {
	i := s.search(start + 1)
	if start >= end || i == len(s.list) || s.list[i].Start >= end {
		return Range{}, false
	}
	return Range{max(start, s.list[i].Start), min(end, s.list[i].End)}, true
}
