package simulation

import (
	"cmp"
	"slices"
)

// thinner is a list with a maximum length. When it is full, it merges neighbors in pairs, and from
// then on it merges new rows in groups of two, then four, and so on. So the resolution is the same
// at the start and at the end.
type thinner[T any] struct {
	limit int
	// merge merges the second of two neighbors into the first. It returns false to keep both.
	merge func(a, b *T) bool
	// same reports whether two neighbors count as one row, and so merge even before the list is
	// full. It may be nil.
	same func(a, b *T) bool

	rows   []counted[T]
	stride uint64 // rows merge into groups of up to this size; 0: rows do not merge yet
}

// counted is a row, the number of rows that it stands for, and its position among the rows of all
// lists.
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
		// Merging does not save enough: drop every second row.
		for i := 1; i < len(kept); i += 2 {
			kept[i/2] = kept[i]
		}
		kept = kept[:len(kept)/2]
	}
	clear(t.rows[len(kept):])
	t.rows = kept
}

// mergeRows merges the rows of several lists in order.
func mergeRows[T any](lists ...*thinner[T]) []T {
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
