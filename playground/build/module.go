package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Sections of a module, and the kind of an export
// (https://www.w3.org/TR/wasm-core-2/#binary-module).
const (
	globalSection = 6
	exportSection = 7
	dataSection   = 11
	globalExport  = 3
)

var errModule = errors.New("not a WebAssembly module with globals, exports and data")

// section is a section of a module.
type section struct {
	kind byte
	body []byte
}

const header = 8 // bytes of a module before its sections

// split returns the sections of a module.
func split(code []byte) (list []section, err error) {
	if len(code) < header {
		return nil, errModule
	}
	for r := (reader{code[header:], false}); len(r.rest) > 0; {
		s := section{kind: r.bytes(1)[0]}
		s.body = r.bytes(r.number())
		if r.short {
			return nil, errModule
		}
		list = append(list, s)
	}
	return list, nil
}

// assemble is the reverse of split.
func assemble(list []section) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range list {
		out = binary.AppendUvarint(append(out, s.kind), uint64(len(s.body)))
		out = append(out, s.body...)
	}
	return out
}

// find returns a section of a module.
func find(list []section, kind byte) (*section, error) {
	for i := range list {
		if list[i].kind == kind {
			return &list[i], nil
		}
	}
	return nil, fmt.Errorf("%w: no section %d", errModule, kind)
}

// exportGlobals adds exports global0, global1, … of all globals. Together with the memory, they are
// the whole state of an instance at rest. So the page can save and restore the instance.
func exportGlobals(list []section) error {
	globals, err := find(list, globalSection)
	if err != nil {
		return err
	}
	exports, err := find(list, exportSection)
	if err != nil {
		return err
	}
	count := (&reader{rest: globals.body}).number()
	r := reader{rest: exports.body}
	body := binary.AppendUvarint(nil, r.number()+count)
	body = append(body, r.rest...)
	for g := range count {
		name := fmt.Sprintf("global%d", g)
		body = append(append(body, byte(len(name))), name...)
		body = binary.AppendUvarint(append(body, globalExport), g)
	}
	exports.body = body
	return nil
}

// joinData joins data segments with few zeros between them. The linker creates 100,000 segments,
// whose headers compress worse than zeros.
func joinData(list []section) error {
	const mostZeros = 1 << 10
	data, err := find(list, dataSection)
	if err != nil {
		return err
	}
	type segment struct {
		at   uint64
		data []byte
	}
	var segments []segment
	r := reader{rest: data.body}
	for range r.number() {
		if !bytes.Equal(r.bytes(2), []byte{0, 0x41}) { // memory 0, i32.const
			return fmt.Errorf("%w: a data segment without an address", errModule)
		}
		s := segment{at: r.number()} // a signed number, but positive
		r.bytes(1)                   // end of the address expression
		s.data = r.bytes(r.number())
		if r.short {
			return errModule
		}
		if n := len(segments) - 1; n >= 0 {
			last := &segments[n]
			// huge if the segment is before the last one
			zeros := s.at - last.at - uint64(len(last.data))
			if zeros <= mostZeros {
				last.data = append(append(last.data, make([]byte, zeros)...), s.data...)
				continue
			}
		}
		s.data = bytes.Clone(s.data)
		segments = append(segments, s)
	}
	body := binary.AppendUvarint(nil, uint64(len(segments)))
	for _, s := range segments {
		body = append(appendSigned(append(body, 0, 0x41), s.at), 0x0b)
		body = binary.AppendUvarint(body, uint64(len(s.data)))
		body = append(body, s.data...)
	}
	data.body = body
	return nil
}

// appendSigned appends a positive number as a signed LEB128.
func appendSigned(to []byte, v uint64) []byte {
	for ; v >= 0x40; v >>= 7 {
		to = append(to, byte(v)|0x80)
	}
	return append(to, byte(v))
}

// reader reads a section. Reads beyond the section's end return zeros.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.rest, r.short = nil, true
		return make([]byte, min(n, header))
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.rest, r.short = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}
