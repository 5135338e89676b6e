package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Direction says which way a packet crosses its interface, seen from the node.
type Direction uint8

// The two directions of pcapng's flags word.
const (
	Inbound Direction = iota
	Outbound
)

// Interface is one of the node's interfaces as the capture names it.
type Interface struct {
	Name string // shown by Wireshark as the interface, such as "if0"
	Addr string // shown as its description, such as "10.0.0.1/24"; "": none
}

// DefaultSnaplen keeps every packet whole: no MTU is larger.
const DefaultSnaplen = 65535

const (
	// maxComment bounds comments and names: an option's length field has 16 bits.
	maxComment = 1024
	// bufferBytes is how much is collected before the io.Writer sees it: at
	// 1400 bytes a packet, one system call for some 180 packets.
	bufferBytes = 256 << 10
)

// ErrNoInterface is returned for a packet on an interface that New was not
// given, and by New if it was given no interface.
var ErrNoInterface = errors.New("capture: no such interface")

// Writer writes one node's packets as pcapng. It belongs to one owner.
//
// An error of the io.Writer below sticks: what follows is not written, and each
// call returns it again, so an owner that looks once at the end misses nothing.
type Writer struct {
	buffer  *bufio.Writer
	ifaces  int
	snaplen int

	block []byte // scratch: a packet's block
	err   error
}

// New writes the file's header and its interfaces to w, numbered from 0 in the
// order given. Of each packet at most snaplen bytes are kept, with its length
// as it was; 0 means DefaultSnaplen.
func New(w io.Writer, ifaces []Interface, snaplen int) (*Writer, error) {
	if len(ifaces) == 0 {
		return nil, ErrNoInterface
	}
	if snaplen <= 0 || snaplen > DefaultSnaplen {
		snaplen = DefaultSnaplen
	}
	out := &Writer{
		buffer: bufio.NewWriterSize(w, bufferBytes), ifaces: len(ifaces), snaplen: snaplen,
	}
	err := out.section()
	for _, i := range ifaces {
		err = errors.Join(err, out.describe(i))
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Add describes one more interface, of the next number.
func (w *Writer) Add(i Interface) error {
	if w.err != nil {
		return w.err
	}
	if err := w.describe(i); err != nil {
		return err
	}
	w.ifaces++
	return nil
}

// Packet records one packet, given as its pieces in wire order, that crossed
// interface iface at the given instant (nanoseconds since 1970). Tools
// show the comment with the packet; "" means none.
func (w *Writer) Packet(
	at int64, iface int, dir Direction, comment string, pieces ...[]byte,
) error {
	r := Record{At: at, Iface: iface, Direction: dir, Comment: comment}
	for _, p := range pieces {
		r.Length += len(p)
	}
	return w.Record(&r, pieces...)
}

// Record holds the properties of a recorded packet, without its bytes.
type Record struct {
	At        int64 // nanoseconds since 1970
	Iface     int
	Direction Direction
	Comment   string // empty: none
	Length    int    // on the wire
	Missed    uint64 // packets between the previous record and this one that were not kept
}

// Record is Packet with all properties given; the pieces may hold only the packet's first bytes.
func (w *Writer) Record(r *Record, pieces ...[]byte) error {
	if w.err != nil {
		return w.err
	}
	if r.Iface < 0 || r.Iface >= w.ifaces {
		return fmt.Errorf("%w: %d of %d", ErrNoInterface, r.Iface, w.ifaces)
	}
	w.begin(r)
	w.text(pieces)
	w.options(r)
	return w.write("a packet")
}

// Drop records a packet that went no further, with the reason's name as its
// comment: "dropped: ttl exceeded".
func (w *Writer) Drop(at int64, iface int, dir Direction, reason string, pieces ...[]byte) error {
	return w.Packet(at, iface, dir, "dropped: "+reason, pieces...)
}

// Statistics records what became of an interface's packets up to an instant: how many there were
// to record, and how many of them were not, for want of room.
func (w *Writer) Statistics(at int64, iface int, packets, missed uint64) error {
	if w.err != nil {
		return w.err
	}
	if iface < 0 || iface >= w.ifaces {
		return fmt.Errorf("%w: %d of %d", ErrNoInterface, iface, w.ifaces)
	}
	return w.statistics(at, iface, packets, missed)
}

// Flush hands what is still buffered to the io.Writer.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if err := w.buffer.Flush(); err != nil {
		w.err = fmt.Errorf("capture: flush: %w", err)
	}
	return w.err
}

// Buffered is how many bytes the io.Writer has not seen yet.
func (w *Writer) Buffered() int { return w.buffer.Buffered() }
