package main

import (
	"bytes"
	"encoding/binary"
)

// The start of a TrueType font, and sizes in it (OpenType 1.9, "Organization of an OpenType Font").
const (
	fontMagic = "\x00\x01\x00\x00"
	fontHead  = 12
	fontEntry = 16
	mostParts = 64 // tables
)

// dropFonts clears the outlines of the TrueType fonts in a program, and returns how many fonts it
// has found. The page shows figures as SVG, for which it needs only the widths of characters.
func dropFonts(data []byte) (found int) {
	for at := 0; ; at++ {
		next := bytes.Index(data[at:], []byte(fontMagic))
		if next < 0 {
			return found
		}
		at += next
		if dropOutlines(data[at:]) {
			found++
		}
	}
}

// drawing lists the tables of a TrueType font that are needed only to draw its characters.
var drawing = []string{"glyf", "loca", "fpgm", "prep", "cvt ", "gasp", "GSUB", "DSIG"}

// dropOutlines clears the tables that draw a font's characters. Those of its names and widths stay.
// It reports whether data begins with a font that has outlines.
func dropOutlines(data []byte) bool {
	if len(data) < fontHead {
		return false
	}
	count := int(binary.BigEndian.Uint16(data[4:]))
	if count > mostParts || len(data) < fontHead+fontEntry*count {
		return false
	}
	parts := map[string][]byte{}
	for i := range count {
		entry := data[fontHead+fontEntry*i:]
		at, size := binary.BigEndian.Uint32(entry[8:]), binary.BigEndian.Uint32(entry[12:])
		if uint64(at)+uint64(size) > uint64(len(data)) {
			return false
		}
		parts[string(entry[:4])] = data[at : at+size]
	}
	if len(bytes.Trim(parts["glyf"], "\x00")) == 0 || parts["hmtx"] == nil {
		return false
	}
	for _, name := range drawing {
		clear(parts[name])
	}
	return true
}
