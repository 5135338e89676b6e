package rdt

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"hash"
	"hash/crc32"
)

// Checksum is the checksum of packets. It provides no authentication: an attacker can compute it.
type Checksum uint8

// These are the checksums. A corrupted packet passes MD5 with a probability of 2^-128, and CRC32C,
// which is much faster, with 2^-32.
const (
	MD5    Checksum = iota // the document's checksum (RFC 1321), 16 bytes
	CRC32C                 // the checksum of RFC 9260 §6.8, 4 bytes
)

// String returns the checksum's name in lower case.
func (c Checksum) String() string {
	if c == CRC32C {
		return "crc32c"
	}
	return "md5"
}

func (c Checksum) size() int {
	if c == CRC32C {
		return 4
	}
	return md5.Size
}

// digester computes the checksum of a packet without its checksum field.
type digester struct {
	kind  Checksum
	size  int
	md5   hash.Hash
	table *crc32.Table
	sum   [md5.Size]byte
}

func newDigester(kind Checksum) digester {
	d := digester{kind: kind, size: kind.size()}
	if kind == CRC32C {
		d.table = crc32.MakeTable(crc32.Castagnoli)
	} else {
		d.md5 = md5.New()
	}
	return d
}

// of returns the checksum of packet b, valid until the next call.
func (d *digester) of(b []byte) []byte {
	before, after := b[:digestAt], b[digestAt+d.size:]
	if d.kind == CRC32C {
		c := crc32.Update(crc32.Update(0, d.table, before), d.table, after)
		binary.BigEndian.PutUint32(d.sum[:], c)
		return d.sum[:d.size]
	}
	d.md5.Reset()
	d.md5.Write(before)
	d.md5.Write(after)
	return d.md5.Sum(d.sum[:0])
}

func (d *digester) seal(b []byte) { copy(b[digestAt:], d.of(b)) }

func (d *digester) verify(b []byte) bool {
	return bytes.Equal(b[digestAt:digestAt+d.size], d.of(b))
}
