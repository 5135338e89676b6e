package rdt

// pageBytes is the unit of an object's memory while it is put together. It takes a page at
// most more than it has bytes.
const pageBytes = 16 << 10

type page [pageBytes]byte

// maxFreePages bounds what is kept of objects that have ended for those still to come.
const maxFreePages = 256

// pages is the memory of objects that are not complete: an object's length is known when its
// end comes, and what grows by copying is copied many times.
type pages struct{ free []*page }

// put copies bytes to their place in an object.
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

// take returns a page whose content is undefined.
func (m *pages) take() *page {
	if last := len(m.free) - 1; last >= 0 {
		p := m.free[last]
		m.free = m.free[:last]
		return p
	}
	return new(page)
}

// join returns the object's bytes. Where chunks that overlap have left a gap there is
// anything.
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

// give takes an object's memory back.
func (m *pages) give(o *object) {
	for _, p := range o.pages {
		if p != nil && len(m.free) < maxFreePages {
			m.free = append(m.free, p)
		}
	}
	o.pages = nil
}
