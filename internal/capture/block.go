package capture

import (
	"encoding/binary"
	"fmt"
)

// A packet is an Enhanced Packet Block of pcapng (draft-ietf-opsawg-pcapng §4.3), in the byte order
// of the section's header:
//
//	type  size  interface  time, upper half  lower half  captured length  original length
//	the bytes, padded to four
//	options, each a code, a length and a value padded to four
//	size
//
// The other blocks begin and end in the same way, with other fields in between.
const (
	sizeAt       = 4
	keptAt       = 20
	flagInbound  = 1
	flagOutbound = 2
)

// These are option codes, first those of all blocks, then those of one block type.
const (
	codeEnd     = 0
	codeComment = 1

	codeApplication = 4 // shb_userappl

	codeName        = 2
	codeDescription = 3
	codeResolution  = 9  // if_tsresol
	codeOffset      = 14 // if_tsoffset

	codeFlags  = 2 // epb_flags: the lowest two bits are the direction
	codeMissed = 4 // epb_dropcount

	codeReceived = 4 // isb_ifrecv
	codeDropped  = 5 // isb_ifdrop
)

var order = binary.LittleEndian

// writeSection writes the header of the file's only section. It contains nothing about the machine,
// so the same run gives the same file everywhere.
func (w *Writer) writeSection() error {
	b := order.AppendUint32(w.block[:0], sectionBlock)
	b = order.AppendUint32(b, 0) // placeholder; end stores the size
	b = order.AppendUint32(b, sectionMagic)
	b = order.AppendUint16(b, 1) // version 1.0
	b = order.AppendUint16(b, 0)
	w.block = order.AppendUint64(b, ^uint64(0)) // section length: unknown
	w.textOption(codeApplication, "tidepool")
	w.option(codeEnd, 0)
	return w.write("the header")
}

// writeInterface writes an interface description block.
func (w *Writer) writeInterface(i Interface) error {
	b := order.AppendUint32(w.block[:0], interfaceBlock)
	b = order.AppendUint32(b, 0) // placeholder; end stores the size
	// The link type is 12, libpcap's internal number of raw IP, and not 101, the number for files:
	// libpcap rejects a file with two interfaces of type 101, because it compares the second with
	// 12. Wireshark accepts both. With IPV4 (228) tcpdump's filters do not match IPv6.
	b = order.AppendUint16(b, linkRaw)
	b = order.AppendUint16(b, 0)
	w.block = order.AppendUint32(b, uint32(w.snaplen))
	w.textOption(codeName, i.Name)
	w.textOption(codeDescription, i.Addr)
	w.option(codeResolution, 1)
	w.block = append(w.block, 9, 0, 0, 0) // resolution: nanoseconds
	w.option(codeEnd, 0)
	return w.write("an interface")
}

// writeStatistics writes an interface statistics block.
func (w *Writer) writeStatistics(at int64, iface int, packets, missed uint64) error {
	b := order.AppendUint32(w.block[:0], statisticsBlock)
	b = order.AppendUint32(b, 0) // placeholder; end stores the size
	b = order.AppendUint32(b, uint32(iface))
	b = order.AppendUint32(b, uint32(at>>32))
	w.block = order.AppendUint32(b, uint32(at))
	w.option(codeReceived, 8)
	w.block = order.AppendUint64(w.block, packets)
	w.option(codeDropped, 8)
	w.block = order.AppendUint64(w.block, missed)
	w.option(codeEnd, 0)
	return w.write("the statistics")
}

func (w *Writer) write(what string) error {
	if _, err := w.buffer.Write(w.end()); err != nil {
		w.err = fmt.Errorf("capture: write %s: %w", what, err)
	}
	return w.err
}

func (w *Writer) begin(r *Record) {
	b := order.AppendUint32(w.block[:0], packetBlock)
	b = order.AppendUint32(b, 0) // placeholder; end stores the size
	b = order.AppendUint32(b, uint32(r.Iface))
	b = order.AppendUint32(b, uint32(r.At>>32))
	b = order.AppendUint32(b, uint32(r.At))
	b = order.AppendUint32(b, 0) // placeholder; data stores the length
	w.block = order.AppendUint32(b, uint32(r.Length))
}

// data appends the first snaplen bytes of the pieces.
func (w *Writer) data(pieces [][]byte) {
	kept := 0
	for _, p := range pieces {
		p = p[:min(len(p), w.snaplen-kept)]
		kept += len(p)
		w.block = append(w.block, p...)
	}
	order.PutUint32(w.block[keptAt:], uint32(kept))
	w.pad()
}

func (w *Writer) options(r *Record) {
	w.textOption(codeComment, r.Comment)
	flags := uint32(flagInbound)
	if r.Direction == Outbound {
		flags = flagOutbound
	}
	w.option(codeFlags, 4)
	w.block = order.AppendUint32(w.block, flags)
	if r.Missed > 0 {
		w.option(codeMissed, 8)
		w.block = order.AppendUint64(w.block, r.Missed)
	}
	w.option(codeEnd, 0)
}

// textOption adds an option, unless its text is empty.
func (w *Writer) textOption(code uint16, text string) {
	if text = text[:min(len(text), maxComment)]; text != "" {
		w.option(code, len(text))
		w.block = append(w.block, text...)
		w.pad()
	}
}

func (w *Writer) option(code uint16, size int) {
	w.block = order.AppendUint16(w.block, code)
	w.block = order.AppendUint16(w.block, uint16(size))
}

func (w *Writer) pad() {
	for len(w.block)%4 != 0 {
		w.block = append(w.block, 0)
	}
}

// end writes the block's size and returns the block. The slice is valid until the next block
// begins.
func (w *Writer) end() []byte {
	size := uint32(len(w.block) + 4)
	order.PutUint32(w.block[sizeAt:], size)
	w.block = order.AppendUint32(w.block, size)
	return w.block
}
