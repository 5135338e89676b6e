package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"slices"
)

// pack compresses a program with gzip, which every browser decodes. Before that, it replaces
// numbers that grow by their differences, and repetitions that are too far apart for gzip by
// references. site/unpack.js is the reverse.
//
// The packed program begins with the length of a head in 4 bytes. The head has numbers: the size
// of the program, the places that packer found, and its runs. A run is a number of bytes, a number
// of bytes to repeat after them, and how far back they begin. The bytes of all runs follow.
func pack(program []byte) ([]byte, error) {
	list, err := split(program)
	if err != nil {
		return nil, err
	}
	p := packer{from: program, to: bytes.Clone(program)}
	numbers := []int{len(program)}
	for _, at := range p.replace(list) {
		numbers = append(numbers, at.begin, at.end, at.count)
	}
	numbers, rest := runs(p.to, numbers)
	var head []byte
	for _, n := range numbers {
		head = binary.AppendUvarint(head, uint64(n))
	}
	text := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	return compress(append(append(text, head...), rest...))
}

// compress compresses with gzip.
func compress(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	err = errors.Join(err, w.Close())
	return packed.Bytes(), err
}

// packer replaces numbers of a program by their differences.
type packer struct{ from, to []byte }

// place is a part of a program with numbers. If its end is 0, the program has none.
type place struct{ begin, end, count int }

// replace returns the list of functions, the code, the table of functions, and its index.
func (p *packer) replace(list []section) (places [4]place) {
	at := header
	for _, s := range list {
		end := at + 1 + len(binary.AppendUvarint(nil, uint64(len(s.body)))) + len(s.body)
		at = end - len(s.body)
		switch s.kind {
		case elementSection:
			places[0] = p.functions(at, end)
		case codeSection:
			places[1] = place{at, end, 0}
			p.code(at, end)
		case dataSection:
			places[2], places[3] = p.table(at, s.body)
		}
		at = end
	}
	return places
}

// value reads a LEB128 of at most 5 bytes. If it is longer, its value is 0.
func (p *packer) value(at int) (v uint64, size int) {
	for size < 5 {
		b := p.from[at+size]
		v |= uint64(b&0x7f) << (7 * size)
		if size++; b < 0x80 {
			return v, size
		}
	}
	return 0, size
}

// number replaces a LEB128 by the difference to the last one. Its length stays: the difference is
// modulo 128 for each byte. It returns the number and the next position.
func (p *packer) number(at int, last uint64) (v uint64, next int) {
	v, size := p.value(at)
	if p.from[at+size-1] >= 0x80 {
		return last, at + size
	}
	for k := range size {
		p.to[at+k] = p.from[at+k]&0x80 | byte((v-last)>>(7*k))&0x7f
	}
	return v, at + size
}

// functions replaces the numbers of the functions in the table of indirect calls.
func (p *packer) functions(begin, end int) place {
	r := reader{rest: p.from[begin:end]}
	segments, kind, code := r.number(), r.bytes(1)[0], r.bytes(1)[0]
	_, _ = r.number(), r.bytes(1) // the first index
	count := int(r.number())
	if segments != 1 || kind != 0 || code != 0x41 || r.short || count > len(r.rest) {
		return place{}
	}
	begin = end - len(r.rest)
	for i, at, v := 0, begin, uint64(0); i < count; i++ {
		v, at = p.number(at, v)
	}
	return place{begin, end, count}
}

// What Go's compiler writes before numbers that grow: the address to which a call returns, the
// block to which a function that waits returns, and the blocks where a function continues.
const (
	beforeReturn = "\x24\x00\x20\x01\x42" // global.set 0, local.get 1, i64.const
	beforeWait   = "\x23\x00\x21\x01\x0d" // global.get 0, local.set 1, br_if
	beforeBlocks = "\x20\x00\x0e"         // local.get 0, br_table
	numberSize   = 5
)

// code replaces numbers of the functions' code. It knows what precedes them, and reads no more of
// the code: what looks like them has differences, too.
func (p *packer) code(begin, end int) {
	var ret, wait uint64
	for i := begin + len(beforeReturn); i < end-numberSize; {
		before := func(s string) bool { return string(p.from[i-len(s):i]) == s }
		switch {
		case before(beforeReturn):
			ret, i = p.number(i, ret)
		case before(beforeWait):
			wait, i = p.number(i, wait)
		case before(beforeBlocks):
			count, size := p.value(i)
			i += size
			for block := uint64(0); i < end-numberSize; count-- {
				block, i = p.number(i, block)
				if count == 0 {
					break
				}
			}
		default:
			i++
		}
	}
}

// table replaces Go's table of functions, and its index, which has 16 entries for each function.
func (p *packer) table(at int, data []byte) (list, index place) {
	t, ok := findTable(data)
	if !ok {
		return list, index
	}
	count := len(t.records)
	at += t.begin
	list = place{at + t.list, at + slices.Max(t.records) + recordSize, count}
	entries := p.to[list.begin:]
	for i, r := range t.records { // a record begins with the function's entry
		entry := p.to[at+r:][:4]
		if !bytes.Equal(entry, entries[8*i:8*i+4]) {
			return place{}, index
		}
	}
	for _, r := range t.records {
		clear(p.to[at+r:][:4])
	}
	p.words(list.begin, count*8, 8)
	const size, entriesEach = 20, 16
	var begins []byte
	for i := range 4 * entriesEach {
		begins = binary.LittleEndian.AppendUint32(begins, uint32(i/entriesEach))
		begins = append(begins, make([]byte, size-4)...)
	}
	n := size * entriesEach * (count - 1)
	data = data[t.begin:]
	if found := bytes.Index(data, begins); found >= 0 && found+n <= len(data) {
		index = place{at + found, at + found + n, size}
		p.words(index.begin, n, size)
	}
	return list, index
}

// words replaces words by their differences to those that are so many bytes before.
func (p *packer) words(begin, size, before int) {
	le := binary.LittleEndian
	for i := begin + before; i < begin+size; i += 4 {
		le.PutUint32(p.to[i:], le.Uint32(p.from[i:])-le.Uint32(p.from[i-before:]))
	}
}

// runs appends the runs of a program to the numbers, and returns the bytes without repetitions.
func runs(program []byte, numbers []int) (all []int, rest []byte) {
	const (
		key   = 12 // bytes that are looked up
		bits  = 22
		tries = 16
		least = 56      // below, a reference costs more than it saves
		near  = 1 << 15 // gzip finds what is nearer
	)
	hash := func(i int) uint64 {
		a := binary.LittleEndian.Uint64(program[i:]) * 0x9e3779b97f4a7c15
		b := uint64(binary.LittleEndian.Uint32(program[i+8:])) * 0xd6e8feb86659fd93
		return (a ^ b) >> (64 - bits)
	}
	last := make([]int32, 1<<bits)        // the last position with a hash, plus 1
	before := make([]int32, len(program)) // the one before each
	begin := 0                            // of the run
	for i := 0; i+key <= len(program); {
		next, length, from := i+1, 0, 0
		for c, k := int(last[hash(i)])-1, 0; c >= 0 && k < tries; c, k = int(before[c])-1, k+1 {
			if i+length >= len(program) || program[c+length] != program[i+length] {
				continue // it is not longer
			}
			n := 0
			for i+n < len(program) && program[c+n] == program[i+n] {
				n++
			}
			if n > length {
				length, from = n, c
			}
		}
		if length >= least && (i-from >= near || length > 8*least) {
			numbers = append(numbers, i-begin, length, i-from)
			rest = append(rest, program[begin:i]...)
			next, begin = i+length, i+length
		}
		for ; i < next && i+key <= len(program); i++ {
			h := hash(i)
			before[i], last[h] = last[h], int32(i+1)
		}
		i = next
	}
	return append(numbers, len(program)-begin, 0, 0), append(rest, program[begin:]...)
}
