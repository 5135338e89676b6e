package capture

import "encoding/binary"

// A packet is an Enhanced Packet Block of pcapng (draft-ietf-opsawg-pcapng §4.3), in the byte order
// that the library's header says:
//
//	type  size  interface  time, upper half  lower half  bytes kept  bytes there were
//	the bytes, padded to four
//	options, each a code, a length and a value padded to four
//	size
//
// The library would allocate its options for every packet.
const (
	packetBlock  = 6
	sizeAt       = 4
	keptAt       = 20
	codeEnd      = 0
	codeComment  = 1
	codeFlags    = 2 // the lowest two bits say the direction
	codeMissed   = 4 // epb_dropcount
	flagInbound  = 1
	flagOutbound = 2
)

var order = binary.LittleEndian

// begin begins a packet's block.
func (w *Writer) begin(r *Record) {
	b := order.AppendUint32(w.block[:0], packetBlock)
	b = order.AppendUint32(b, 0) // see end
	b = order.AppendUint32(b, uint32(r.Iface))
	b = order.AppendUint32(b, uint32(r.At>>32))
	b = order.AppendUint32(b, uint32(r.At))
	b = order.AppendUint32(b, 0) // see text
	w.block = order.AppendUint32(b, uint32(r.Length))
}

// text appends the first snaplen bytes of the pieces.
func (w *Writer) text(pieces [][]byte) {
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
	if comment := r.Comment[:min(len(r.Comment), maxComment)]; comment != "" {
		w.option(codeComment, len(comment))
		w.block = append(w.block, comment...)
		w.pad()
	}
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

func (w *Writer) option(code uint16, size int) {
	w.block = order.AppendUint16(w.block, code)
	w.block = order.AppendUint16(w.block, uint16(size))
}

// pad fills up to a multiple of four bytes.
func (w *Writer) pad() {
	for len(w.block)%4 != 0 {
		w.block = append(w.block, 0)
	}
}

// end ends the block with its size and returns it; it is lent until the next begins.
func (w *Writer) end() []byte {
	size := uint32(len(w.block) + 4)
	order.PutUint32(w.block[sizeAt:], size)
	w.block = order.AppendUint32(w.block, size)
	return w.block
}
