package capture

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// These are block types of pcapng (draft-ietf-opsawg-pcapng §11.1).
const (
	sectionBlock    = 0x0a0d0d0a
	interfaceBlock  = 1
	oldPacketBlock  = 2
	simpleBlock     = 3
	statisticsBlock = 5
	packetBlock     = 6
)

const (
	sectionMagic = 0x1a2b3c4d
	// maxBlock limits the memory that a file can make the reader allocate.
	maxBlock = 16 << 20
)

// These are link types (draft-ietf-opsawg-pcaplinktype).
const (
	linkNull     = 0
	linkEthernet = 1
	linkRaw      = 12  // LINKTYPE_RAW inside libpcap: see writeInterface
	linkRawIP    = 101 // value of LINKTYPE_RAW
	linkLoop     = 108
	linkSLL      = 113
	linkIPv4     = 228
	linkIPv6     = 229
)

// ifaceBlock is an interface description block of a file.
type ifaceBlock struct {
	link    uint16
	snaplen uint32
	name    string
	second  uint64 // time stamp units per second
	offset  int64  // offset in seconds
}

func (f *ifaceBlock) nanoseconds(stamp uint64) int64 {
	high, low := bits.Mul64(stamp%f.second, 1e9)
	fraction, _ := bits.Div64(high, low, f.second)
	return (int64(stamp/f.second)+f.offset)*1e9 + int64(fraction)
}

// blockReader reads the blocks of a pcapng file and keeps the interfaces of its section.
type blockReader struct {
	r      *bufio.Reader
	order  binary.ByteOrder
	kind   uint32
	block  bytes.Buffer
	body   []byte // the block's body, valid until the next block
	ifaces []ifaceBlock
}

// newBlockReader reads the header of the first section.
func newBlockReader(r io.Reader) (*blockReader, error) {
	b := &blockReader{r: bufio.NewReader(r), order: order}
	if err := b.next(); err != nil {
		return nil, err
	}
	if b.kind != sectionBlock {
		return nil, fmt.Errorf("block of type %#x instead of a section header", b.kind)
	}
	return b, nil
}

// next reads one block. At the end of the file it returns io.EOF or io.ErrUnexpectedEOF.
func (b *blockReader) next() error {
	head, err := b.r.Peek(12)
	if len(head) < 12 {
		if err == nil || errors.Is(err, io.EOF) {
			return io.EOF
		}
		return err
	}
	b.kind = b.order.Uint32(head)
	if b.kind == sectionBlock { // the type has the same value in both byte orders
		switch {
		case binary.LittleEndian.Uint32(head[8:]) == sectionMagic:
			b.order = binary.LittleEndian
		case binary.BigEndian.Uint32(head[8:]) == sectionMagic:
			b.order = binary.BigEndian
		default:
			return errors.New("section header without byte order magic")
		}
	}
	length := b.order.Uint32(head[4:])
	if length < 12 || length > maxBlock || length%4 != 0 {
		return fmt.Errorf("block of type %#x has length %d", b.kind, length)
	}
	b.block.Reset() // grows with the bytes read, whatever length the header claims
	if _, err := io.CopyN(&b.block, b.r, int64(length)); err != nil {
		return err
	}
	b.body = b.block.Bytes()[8 : length-4]
	switch b.kind {
	case sectionBlock:
		return b.readSection()
	case interfaceBlock:
		return b.readInterface()
	}
	return nil
}

func (b *blockReader) readSection() error {
	if len(b.body) < 16 {
		return b.short()
	}
	if major := b.order.Uint16(b.body[4:]); major != 1 {
		return fmt.Errorf("pcapng version %d: only version 1 is supported", major)
	}
	b.ifaces = b.ifaces[:0]
	return nil
}

func (b *blockReader) readInterface() error {
	if len(b.body) < 8 {
		return b.short()
	}
	f := ifaceBlock{link: b.order.Uint16(b.body), snaplen: b.order.Uint32(b.body[4:]), second: 1e6}
	var problem error
	b.options(b.body[8:], func(code uint16, value []byte) {
		switch {
		case code == codeName:
			f.name = string(value)
		case code == codeOffset && len(value) >= 8:
			f.offset = int64(b.order.Uint64(value))
		case code == codeResolution && len(value) >= 1:
			f.second, problem = resolution(value[0])
		}
	})
	b.ifaces = append(b.ifaces, f)
	return problem
}

// resolution returns the time stamp units per second: a power of ten, or of two if the highest bit
// is set.
func resolution(v byte) (uint64, error) {
	switch exponent := v &^ 0x80; {
	case v >= 0x80 && exponent < 64:
		return 1 << exponent, nil
	case v < 0x80 && exponent < 20:
		second := uint64(1)
		for range exponent {
			second *= 10
		}
		return second, nil
	}
	return 1, fmt.Errorf("timestamp resolution %#x: must be 10^-19 s, 2^-63 s or coarser", v)
}

// options calls f with each complete option of a list.
func (b *blockReader) options(list []byte, f func(code uint16, value []byte)) {
	for len(list) >= 4 {
		code, length := b.order.Uint16(list), int(b.order.Uint16(list[2:]))
		list = list[4:]
		if code == codeEnd || length > len(list) {
			return
		}
		f(code, list[:length])
		list = list[min(len(list), (length+3)&^3):]
	}
}

// packet decodes a packet block of any type into p. It returns false for other blocks.
func (b *blockReader) packet(p *Captured) (link uint16, ok bool, err error) {
	iface, head := 0, 20
	switch b.kind {
	case packetBlock, oldPacketBlock:
	case simpleBlock:
		head = 4
	default:
		return 0, false, nil
	}
	if len(b.body) < head {
		return 0, false, b.short()
	}
	switch b.kind {
	case packetBlock:
		iface = int(b.order.Uint32(b.body))
	case oldPacketBlock:
		iface = int(b.order.Uint16(b.body))
	}
	if iface >= len(b.ifaces) {
		return 0, false, fmt.Errorf("packet on interface %d: the section has only %d interfaces",
			iface, len(b.ifaces))
	}
	f := &b.ifaces[iface]
	*p = Captured{Interface: iface, Name: f.name, Length: int(b.order.Uint32(b.body[head-4:]))}
	kept := p.Length
	if b.kind == simpleBlock {
		kept = min(kept, len(b.body)-head)
		if f.snaplen > 0 {
			kept = min(kept, int(f.snaplen))
		}
	} else {
		stamp := uint64(b.order.Uint32(b.body[4:]))<<32 | uint64(b.order.Uint32(b.body[8:]))
		p.At = f.nanoseconds(stamp)
		kept = int(b.order.Uint32(b.body[12:]))
	}
	if kept > len(b.body)-head {
		return 0, false, b.short()
	}
	p.Data = b.body[head : head+kept]
	b.options(b.body[min(len(b.body), head+(kept+3)&^3):], func(code uint16, value []byte) {
		switch {
		case code == codeComment && p.Comment == "":
			p.Comment = string(value)
		case code == codeFlags && len(value) >= 4:
			p.Out = b.order.Uint32(value)&3 == flagOutbound
		case code == codeMissed && len(value) >= 8 && b.kind == packetBlock:
			p.Missed = b.order.Uint64(value)
		}
	})
	return f.link, true, nil
}

func (b *blockReader) short() error { return fmt.Errorf("block of type %#x is too short", b.kind) }
