package main

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// TCP flags.
const (
	fin = 1 << iota
	syn
	rst
	_
	ack
	urg
	ece
)

// packet is an IP packet that a mutant may change.
type packet []byte

func (p packet) proto() byte  { return p[9] }
func (p packet) header() int  { return int(p[0]&15) * 4 }
func (p packet) body() []byte { return p[p.header():] }

// tcp reports whether the packet has a TCP header.
func (p packet) tcp() bool {
	return len(p) >= ip.HeaderLen && p.header() >= ip.HeaderLen && p.proto() == ip.ProtoTCP &&
		len(p) >= p.header()+20
}

func (p packet) flags() byte         { return p.body()[13] }
func (p packet) has(flags byte) bool { return p.tcp() && p.flags()&flags == flags }

// seq returns the sequence number; 0 if the packet is not a segment.
func (p packet) seq() uint32 {
	if !p.tcp() {
		return 0
	}
	return binary.BigEndian.Uint32(p.body()[4:])
}

func (p packet) ack() uint32     { return binary.BigEndian.Uint32(p.body()[8:]) }
func (p packet) win() uint16     { return binary.BigEndian.Uint16(p.body()[14:]) }
func (p packet) options() []byte { return p.body()[20:p.offset()] }
func (p packet) offset() int     { return min(max(20, int(p.body()[12]>>4)*4), len(p.body())) }
func (p packet) data() []byte    { return p.body()[p.offset():] }

// span returns how many sequence numbers a segment occupies.
func (p packet) span() uint32 {
	if !p.tcp() {
		return 0
	}
	n := uint32(len(p.data()))
	if p.has(fin) {
		n++
	}
	if p.has(syn) {
		n++
	}
	return n
}

// option returns the body of an option in the packet, or nil.
func (p packet) option(kind byte) []byte {
	for b := p.options(); len(b) > 1 && b[0] != 0; {
		if b[0] == 1 {
			b = b[1:]
			continue
		}
		if b[1] < 2 || int(b[1]) > len(b) {
			return nil
		}
		if b[0] == kind {
			return b[2:b[1]]
		}
		b = b[b[1]:]
	}
	return nil
}

// sealed returns the packet with both checksums computed again.
func (p packet) sealed() packet {
	p[10], p[11] = 0, 0
	binary.BigEndian.PutUint16(p[10:], checksum.Checksum(p[:p.header()]))
	if p.tcp() {
		p.sum(len(p.body()), len(p.body()))
	}
	return p
}

// sum computes the checksum of TCP over n bytes with a length in the pseudo-header.
func (p packet) sum(n, length int) {
	src, dst := ip.V4(p[12], p[13], p[14], p[15]), ip.V4(p[16], p[17], p[18], p[19])
	b := p.body()
	b[16], b[17] = 0, 0
	pseudo := checksum.PseudoHeader(src, dst, ip.ProtoTCP, length)
	binary.BigEndian.PutUint16(b[16:], ^checksum.Fold(checksum.Sum(b[:n], pseudo)))
}

// rip reports whether the packet is a RIP message with this command.
func (p packet) rip(command byte) bool {
	return len(p) >= 24 && p.proto() == ip.ProtoRIP && p.body()[1] == command
}

// costs changes the costs in a response.
func (p packet) costs(change func(cost uint32) uint32) {
	for b := p.body()[4:]; len(b) >= 12; b = b[12:] {
		binary.BigEndian.PutUint32(b, change(binary.BigEndian.Uint32(b)))
	}
}

// forwarded reports whether the packet is one that the subject forwards.
func (p packet) forwarded() bool { return p.proto() == 253 || p.proto() == 99 }

// onlyEntries returns a response without the entries whose cost is not wanted.
func (p packet) onlyEntries(wanted func(cost uint32) bool) packet {
	if !p.rip(2) {
		return p
	}
	short := append(packet(nil), p[:24]...)
	n := uint16(0)
	for b := p.body()[4:]; len(b) >= 12; b = b[12:] {
		if wanted(binary.BigEndian.Uint32(b)) {
			short = append(short, b[:12]...)
			n++
		}
	}
	binary.BigEndian.PutUint16(short[2:], uint16(len(short)))
	binary.BigEndian.PutUint16(short.body()[2:], n)
	return short.sealed()
}

// cut shortens the data of a segment to n bytes.
func (p packet) cut(n int) packet {
	p = p[:len(p)-len(p.data())+n]
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	return p.sealed()
}
