package recovery

// recut cuts the records that are longer than a segment of mss bytes. It keeps records of arrived
// segments, and MTU probes, which are long on purpose. No piece spans two records in flight,
// because the peer reports segments as they were sent. Before cutting, recut joins adjacent lost
// records, so that only their last piece is short. The pieces replace the records both in sequence
// order and in the order of transmission. move maps the id of a record to the id of the piece with
// its first byte, and the end of the old queue to the end of the new one.
func (q *sentQueue) recut(mss int) (move func(id uint32) uint32) {
	old := *q
	starts := make([]uint32, old.len()+1)
	ids := uint32(0)
	for i := uint32(0); i < uint32(old.len()); {
		run := old.run(old.first + i)
		from := old.at(old.first + i).seq
		for k := i; k < i+run; k++ {
			starts[k] = ids + uint32(int(old.at(old.first+k).seq-from)/mss)
		}
		ids += old.pieces(old.first+i, run, mss)
		i += run
	}
	starts[old.len()] = ids
	size := max(firstRecords, len(old.recs))
	for size < int(ids) {
		size *= 2
	}
	q.recs, q.next, q.lastLost = make([]record, size), q.first+ids, q.first
	q.lists, q.count, q.retransmitted = [2]idList{}, [numPlaces]int{}, 0
	q.cutTo, q.uneven = old.at(old.next-1).end(), false
	for i := uint32(0); i < uint32(old.len()); {
		run := old.run(old.first + i)
		q.paste(q.first+starts[i], &old, old.first+i, run, mss)
		i += run
	}
	for id, n := old.lists[inFlight].head, old.lists[inFlight].n; n > 0; n-- {
		for k := starts[id-old.first]; k < starts[id-old.first+1]; k++ {
			q.link(&q.lists[inFlight], q.first+k, q.at(q.first+k))
		}
		id = old.at(id).next
	}
	for id := q.first; id != q.next; id++ {
		if r := q.at(id); r.place == lost {
			q.link(&q.lists[lost], id, r)
		}
	}
	return func(id uint32) uint32 {
		return old.first + starts[min(id-old.first, uint32(old.len()))]
	}
}

// run returns how many records from id on recut treats as one.
func (q *sentQueue) run(id uint32) uint32 {
	n := uint32(1)
	for q.at(id).merges() && q.has(id+n) && q.at(id+n).merges() {
		n++
	}
	return n
}

// merges reports whether a record may be joined with its neighbors. A FIN without data stays alone.
func (r *record) merges() bool {
	return r.place == lost && r.flags&MTUProbe == 0 && r.payload() > 0
}

// pieces returns how many records of mss bytes of data replace a run.
func (q *sentQueue) pieces(id, run uint32, mss int) uint32 {
	first, last := q.at(id), q.at(id+run-1)
	n := int(last.seq-first.seq) + last.payload()
	if first.place == sacked || first.flags&MTUProbe != 0 || n <= mss {
		return 1
	}
	return uint32(ceilDiv(n, mss))
}

// paste writes the pieces of a run of old to id and the ids after it. A piece gets the transmission
// time of the record with its last byte. It counts as retransmitted if any part of it was (RFC 6298
// §3, Karn's algorithm).
func (q *sentQueue) paste(id uint32, old *sentQueue, from, run uint32, mss int) {
	seq, end := old.at(from).seq, old.at(from+run-1).end()
	again := Flags(0)
	for n := old.pieces(from, run, mss); n > 0; n-- {
		stop := end
		if n > 1 {
			stop = seq + uint64(mss)
		}
		for again |= old.at(from).flags & recRetransmitted; old.at(from).end() < stop; {
			from++
			again |= old.at(from).flags & recRetransmitted
		}
		piece := *old.at(from)
		piece.flags |= again
		if n > 1 {
			piece.flags &^= FIN
		}
		if piece.end() == stop {
			from++
		}
		piece.seq, piece.size = seq, uint16(stop-seq)
		seq, again = stop, 0
		*q.at(id) = piece
		q.count[piece.place]++
		if piece.place == inFlight {
			q.countRetransmitted(&piece, 1)
		}
		id++
	}
}
