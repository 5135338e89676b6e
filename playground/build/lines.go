package main

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// The format of Go's table of functions (src/internal/abi/symtab.go, src/runtime/symtab.go): a
// header of words, then a list of entries and offsets, which lead to the functions' records.
const (
	tableGo     = "go1.26"                           // the version of Go that has this format
	tableMagic  = "\xf1\xff\xff\xff\x00\x00\x01\x08" // for WebAssembly
	tableHeader = 8 + 8*8
	recordSize  = 44 // size without the offsets of the PC tables and of data
)

// tableKnown reports whether a version of Go has this format.
func tableKnown(version string) bool {
	return version == tableGo || strings.HasPrefix(version, tableGo+".")
}

// functionTable is Go's table of functions in a program's data. The offsets are within the table.
type functionTable struct {
	begin   int // offset of the table in the data
	names   int // names of functions and files, up to pcs
	pcs     int // PC tables, up to list
	list    int // an entry for each function
	records []int
}

// findTable returns the table of functions. It returns false if the program has no such table, or
// the table of another version of Go.
func findTable(data []byte) (t functionTable, ok bool) {
	t.begin = bytes.Index(data, []byte(tableMagic))
	if t.begin < 0 || len(data) < t.begin+tableHeader {
		return t, false
	}
	table := data[t.begin:]
	word := func(i int) int { return int(binary.LittleEndian.Uint64(table[8+8*i:])) }
	count, units, files := word(0), word(4), word(5)
	t.names, t.pcs, t.list = word(3), word(6), word(7)
	if t.names < tableHeader || units < t.names || files < units || t.pcs < files ||
		t.list < t.pcs || t.list > len(table) || count <= 0 || count > (len(table)-t.list)/8 {
		return t, false
	}
	for i := range count {
		begin := t.list + int(binary.LittleEndian.Uint32(table[t.list+8*i+4:]))
		if begin > len(table)-recordSize {
			return t, false
		}
		tables := int(binary.LittleEndian.Uint32(table[begin+28:]))
		if tables > (len(table)-begin-recordSize)/4 {
			return t, false
		}
		t.records = append(t.records, begin)
	}
	return t, true
}

// dropLines removes the names of functions and files, and the line numbers, from a program. They
// are an eighth of the compressed program, and only stack traces show them. The page shows only the
// first line of a crash, which contains neither. It returns the number of functions; 0: the program
// has no table in the known format.
func dropLines(data []byte) int {
	t, ok := findTable(data)
	if !ok {
		return 0
	}
	table := data[t.begin:]
	used, lines := map[uint32]bool{0: true}, map[uint32]bool{} // PC tables by offset
	for _, begin := range t.records {
		r := table[begin:]
		field := func(at int) uint32 { return binary.LittleEndian.Uint32(r[at:]) }
		used[field(16)] = true // table of the stack's depth
		for k := range int(field(28)) {
			used[field(recordSize+4*k)] = true
		}
		lines[field(20)], lines[field(24)] = true, true
		clear(r[4:8])   // the name
		clear(r[20:28]) // no tables of files and lines
		clear(r[32:40]) // the unit and the first line
	}
	for offset := range lines {
		if begin := t.pcs + int(offset); !used[offset] && begin < t.list {
			clear(table[begin : begin+tableEnd(table[begin:t.list])])
		}
	}
	clear(table[t.names:t.pcs])
	return len(t.records)
}

// tableEnd returns the length of a PC table. The table consists of pairs of differences, one of a
// value and one of a PC. It ends with the first pair whose value difference is 0, not counting the
// very first pair.
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
