package main

import (
	"bytes"
	"encoding/binary"
)

// The format of Go's table of functions (src/internal/abi/symtab.go, src/runtime/symtab.go): a
// header of words, then a list of entries and offsets, which lead to the functions' records.
const (
	tableGo     = "go1.26"                           // the version of Go that has this format
	tableMagic  = "\xf1\xff\xff\xff\x00\x00\x01\x08" // for WebAssembly
	tableHeader = 8 + 8*8
	recordSize  = 44 // without the offsets of the PC tables and of data
)

// dropLines removes the names of functions and files and the line numbers from a program. They are
// a twelfth of it when compressed, and only traces of crashes show them. The page shows the first
// line of a crash, which has none of them. It returns the number of functions; 0: the program has
// no table, or that of another version of Go.
func dropLines(data []byte) int {
	at := bytes.Index(data, []byte(tableMagic))
	if at < 0 || len(data) < at+tableHeader {
		return 0
	}
	table := data[at:]
	word := func(i int) int { return int(binary.LittleEndian.Uint64(table[8+8*i:])) }
	count, first, units, names, pcs, list := word(0), word(3), word(4), word(5), word(6), word(7)
	if first < tableHeader || units < first || names < units || pcs < names || list < pcs ||
		list > len(table) || count <= 0 || count > (len(table)-list)/8 {
		return 0
	}
	records := make([][]byte, count)
	for i := range records {
		begin := list + int(binary.LittleEndian.Uint32(table[list+8*i+4:]))
		if begin > len(table)-recordSize {
			return 0
		}
		records[i] = table[begin:]
		tables := int(binary.LittleEndian.Uint32(records[i][28:]))
		if tables > (len(records[i])-recordSize)/4 {
			return 0
		}
	}
	used, lines := map[uint32]bool{0: true}, map[uint32]bool{} // PC tables by offset
	for _, r := range records {
		field := func(at int) uint32 { return binary.LittleEndian.Uint32(r[at:]) }
		used[field(16)] = true // the stack's depth
		for k := range int(field(28)) {
			used[field(recordSize+4*k)] = true
		}
		lines[field(20)], lines[field(24)] = true, true
		clear(r[20:28]) // no tables of files and lines
		clear(r[36:40]) // the first line
	}
	for offset := range lines {
		if begin := pcs + int(offset); !used[offset] && begin < list {
			clear(table[begin : begin+tableEnd(table[begin:list])])
		}
	}
	clear(table[first:pcs])
	return count
}

// tableEnd returns the length of a PC table: pairs of differences, of a value and of a PC, until
// the value's is 0 in another than the first pair.
func tableEnd(b []byte) (n int) {
	for first := true; n < len(b); first = false {
		value, size := binary.Uvarint(b[n:])
		if size <= 0 {
			return n
		}
		n += size
		if value == 0 && !first {
			return n
		}
		_, size = binary.Uvarint(b[n:])
		n += max(0, size)
	}
	return n
}
