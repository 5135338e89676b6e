package simulation

import (
	"cmp"
	"slices"
)

// thinner is a list that never becomes longer than its limit: when it is full, neighbours are
// merged by twos, and from then on what comes is merged by twos, by fours and so on, so that
// the list is as fine at its end as at its beginning.
type thinner[T any] struct {
	limit int
	// merge makes the first of two neighbours stand for both, or says that both are to be kept.
	merge func(a, b *T) bool
	// same says that the later of two says all, so that the list has no need of the other. Nil:
	// that is never so.
	same func(a, b *T) bool

	rows   []counted[T]
	stride uint64 // rows are merged up to so many; 0: none are
}

// counted is a row with how many it stands for, and its place among those of other lists.
type counted[T any] struct {
	row          T
	count, place uint64
}

func (t *thinner[T]) add(row *T, place uint64) {
	if n := len(t.rows); n > 0 {
		last := &t.rows[n-1]
		same := t.same != nil && t.same(&last.row, row)
		if same || last.count < t.stride {
			if t.merge(&last.row, row) {
				last.place = place
				if !same {
					last.count++
				}
				return
			}
		}
	}
	if len(t.rows) >= t.limit {
		t.thin()
	}
	t.rows = append(t.rows, counted[T]{*row, 1, place})
}

func (t *thinner[T]) thin() {
	t.stride = max(1, t.stride) * 2
	kept := t.rows[:0]
	for i := range t.rows {
		r := &t.rows[i]
		if n := len(kept); n > 0 && kept[n-1].count+r.count <= t.stride {
			if last := &kept[n-1]; t.merge(&last.row, &r.row) {
				last.count, last.place = last.count+r.count, r.place
				continue
			}
		}
		kept = append(kept, *r)
	}
	if len(kept) > t.limit/4*3 {
		// Too little can be merged: every second row goes.
		for i := 1; i < len(kept); i += 2 {
			kept[i/2] = kept[i]
		}
		kept = kept[:len(kept)/2]
	}
	clear(t.rows[len(kept):])
	t.rows = kept
}

// together returns the rows of some lists, in their order.
func together[T any](lists ...*thinner[T]) []T {
	var all []counted[T]
	for _, l := range lists {
		all = append(all, l.rows...)
	}
	slices.SortFunc(all, func(a, b counted[T]) int { return cmp.Compare(a.place, b.place) })
	rows := make([]T, len(all))
	for i := range all {
		rows[i] = all[i].row
	}
	return rows
}
