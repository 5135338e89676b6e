package main

import (
	"bytes"
	"encoding/binary"

	"codeberg.org/go-fonts/liberation/liberationmonobold"
	"codeberg.org/go-fonts/liberation/liberationmonoregular"
	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-fonts/liberation/liberationserifbold"
	"codeberg.org/go-fonts/liberation/liberationserifregular"
)

// figureFonts are the fonts of internal/lab/chart.
var figureFonts = [][]byte{
	liberationmonobold.TTF, liberationmonoregular.TTF, liberationsansbold.TTF,
	liberationsansregular.TTF, liberationserifbold.TTF, liberationserifregular.TTF,
}

// dropFonts clears the outlines of the figures' fonts in a program, and returns how many fonts it
// has found. The page shows figures as SVG, for which it needs only the widths of characters.
func dropFonts(data []byte) (found int) {
	for _, font := range figureFonts {
		if at := bytes.Index(data, font); at >= 0 {
			dropOutlines(data[at : at+len(font)])
			found++
		}
	}
	return found
}

// drawing are the tables of a TrueType font that only its outlines need.
var drawing = []string{"glyf", "loca", "fpgm", "prep", "cvt ", "gasp", "GSUB", "DSIG"}

// dropOutlines clears the tables that draw a font's characters. Those of its names and widths stay.
func dropOutlines(font []byte) {
	const header, entry = 12, 16
	for i := range int(binary.BigEndian.Uint16(font[4:])) {
		table := font[header+entry*i:]
		at, size := binary.BigEndian.Uint32(table[8:]), binary.BigEndian.Uint32(table[12:])
		for _, name := range drawing {
			if string(table[:4]) == name {
				clear(font[at : at+size])
			}
		}
	}
}
