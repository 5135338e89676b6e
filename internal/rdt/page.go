package rdt

// pageBytes is the unit of an incomplete object's memory. An object uses at most one page more than
// its bytes need.
const pageBytes = 16 << 10

type page [pageBytes]byte

// maxFreePages limits the free pages that are kept for later objects.
const maxFreePages = 256

// pages is the memory of incomplete objects. The length of an object is known only at its end, and
// a growing slice would be copied many times.
type pages struct{ free []*page }

// put copies bytes to their offset in an object.
func (m *pages) put(o *object, at int, b []byte) {
	for len(b) > 0 {
		i := at / pageBytes
		for len(o.pages) <= i {
			o.pages = append(o.pages, nil)
		}
		if o.pages[i] == nil {
			o.pages[i] = m.take()
		}
		n := copy(o.pages[i][at%pageBytes:], b)
		at, b = at+n, b[n:]
	}
}

// take returns a page with undefined contents.
func (m *pages) take() *page {
	if last := len(m.free) - 1; last >= 0 {
		p := m.free[last]
		m.free = m.free[:last]
		return p
	}
	return new(page)
}

// join returns the object's bytes. The contents of gaps that overlapping chunks have left are
// undefined.
func (o *object) join() []byte {
	var gap page
	b := make([]byte, 0, o.end)
	for _, p := range o.pages {
		if p == nil {
			p = &gap
		}
		b = append(b, p[:min(pageBytes, o.end-len(b))]...)
	}
	return b
}

// give frees an object's memory.
func (m *pages) give(o *object) {
	for _, p := range o.pages {
		if p != nil && len(m.free) < maxFreePages {
			m.free = append(m.free, p)
		}
	}
	o.pages = nil
}
