package tcp

// refit makes segments fit the path, the peer and the user's wish. Where they become smaller,
// what is in flight is cut anew: RFC 5681 §3.1's loss window is one segment, and the record of
// one that was sent before must not make more of it.
func (c *Conn) refit() {
	before := c.snd.mss
	c.snd.mss = c.mssFor(c.path.MTU)
	if c.snd.mss >= before || c.work == nil || c.sent.empty() {
		return
	}
	move := c.sent.recut(c.snd.mss)
	b := &c.board
	b.judged, b.highest, b.tried = move(b.judged), move(b.highest), move(b.tried)
	b.above = 0
	for id := b.judged; id != c.sent.next; id++ {
		if c.sent.at(id).place == sacked {
			b.above++
		}
	}
}

// recut cuts the records that are longer than a segment of mss bytes, but for what has arrived
// and for probes of the path, which are to be long. The pieces take the record's place in the
// order of sequence numbers and in that of transmission. It returns where an id has gone: to
// the first piece, and an id behind all to behind all.
func (q *sentQueue) recut(mss int) (move func(id uint32) uint32) {
	old := *q
	starts := make([]uint32, old.len()+1)
	ids := uint32(0)
	for i := range starts[:old.len()] {
		starts[i] = ids
		ids += old.at(old.first + uint32(i)).pieces(mss)
	}
	starts[old.len()] = ids
	size := max(firstRecords, len(old.recs))
	for size < int(ids) {
		size *= 2
	}
	q.recs, q.next, q.lastLost = make([]record, size), q.first+ids, q.first
	q.lists, q.count, q.again = [2]idList{}, [numPlaces]int{}, 0
	for i := range starts[:old.len()] {
		q.paste(q.first+starts[i], *old.at(old.first + uint32(i)), mss)
	}
	for p := range old.lists {
		for id, n := old.lists[p].head, old.lists[p].n; n > 0; n-- {
			i := id - old.first
			for k := starts[i]; k < starts[i+1]; k++ {
				r := q.at(q.first + k)
				q.link(&q.lists[p], q.first+k, r)
			}
			id = old.at(id).next
		}
	}
	return func(id uint32) uint32 {
		return old.first + starts[min(id-old.first, uint32(old.len()))]
	}
}

// pieces returns how many records of mss bytes of text a record becomes.
func (r *record) pieces(mss int) uint32 {
	if r.place == sacked || r.flags&recMTUProbe != 0 || r.text() <= mss {
		return 1
	}
	return uint32(ceilDiv(r.text(), mss))
}

// paste writes the pieces of a record from id on.
func (q *sentQueue) paste(id uint32, r record, mss int) {
	for n := r.pieces(mss); n > 0; n-- {
		piece := r
		if n > 1 {
			piece.size, piece.flags = uint16(mss), r.flags&^recFIN
		}
		r.seq += uint64(piece.size)
		r.size -= piece.size
		*q.at(id) = piece
		q.count[piece.place]++
		if piece.place == inFlight {
			q.countAgain(&piece, 1)
		}
		id++
	}
}
