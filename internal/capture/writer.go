package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Direction is a packet's direction on its interface, seen from the node.
type Direction uint8

// These are the directions in pcapng's flags option.
const (
	Inbound Direction = iota
	Outbound
)

// Interface describes an interface of the node.
type Interface struct {
	Name string // Wireshark's interface name, such as "if0"
	Addr string // Wireshark's interface description, such as "10.0.0.1/24"; may be empty
}

// DefaultSnaplen keeps whole packets, because no MTU is larger.
const DefaultSnaplen = 65535

const (
	// maxComment limits comments and names: the length field of an option has 16 bits.
	maxComment = 1024
	// bufferBytes is the size of the write buffer: with packets of 1400 bytes, one system call for
	// about 180 packets.
	bufferBytes = 256 << 10
)

// ErrNoInterface means that a packet's interface does not exist, or that New got no interfaces.
var ErrNoInterface = errors.New("capture: no such interface")

// Writer writes one node's packets as pcapng. It is not safe for concurrent use. After an error of
// the io.Writer, it writes nothing more, and each call returns the error again. So a caller may
// check only the last call.
type Writer struct {
	buffer  *bufio.Writer
	ifaces  int
	snaplen int

	block []byte // the current packet's block
	err   error
}

// New writes the file header and the interfaces to w, numbered from 0. At most snaplen bytes of
// each packet are kept; 0 means DefaultSnaplen.
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
	err := out.writeSection()
	for _, i := range ifaces {
		err = errors.Join(err, out.writeInterface(i))
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Add describes one more interface, with the next number.
func (w *Writer) Add(i Interface) error {
	if w.err != nil {
		return w.err
	}
	if err := w.writeInterface(i); err != nil {
		return err
	}
	w.ifaces++
	return nil
}

// Packet records a packet of interface iface. at is its time in nanoseconds since 1970, and pieces
// are its bytes in order. Wireshark shows the comment with the packet; it may be empty.
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
	Comment   string // comment for Wireshark; may be empty
	Length    int    // length on the link in bytes
	Missed    uint64 // packets missing between the previous record and this one
}

// Record records a packet with all properties; the pieces may hold only the packet's first bytes.
func (w *Writer) Record(r *Record, pieces ...[]byte) error {
	if w.err != nil {
		return w.err
	}
	if r.Iface < 0 || r.Iface >= w.ifaces {
		return fmt.Errorf("%w: %d of %d", ErrNoInterface, r.Iface, w.ifaces)
	}
	w.begin(r)
	w.data(pieces)
	w.options(r)
	return w.write("a packet")
}

// Drop records a dropped packet, with the reason as its comment: "dropped: ttl exceeded".
func (w *Writer) Drop(at int64, iface int, dir Direction, reason string, pieces ...[]byte) error {
	return w.Packet(at, iface, dir, "dropped: "+reason, pieces...)
}

// Statistics records an interface's counters up to an instant: the number of packets, and of those
// that are missing because the buffer was full.
func (w *Writer) Statistics(at int64, iface int, packets, missed uint64) error {
	if w.err != nil {
		return w.err
	}
	if iface < 0 || iface >= w.ifaces {
		return fmt.Errorf("%w: %d of %d", ErrNoInterface, iface, w.ifaces)
	}
	return w.writeStatistics(at, iface, packets, missed)
}

// Flush writes the buffered data to the io.Writer.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if err := w.buffer.Flush(); err != nil {
		w.err = fmt.Errorf("capture: flush: %w", err)
	}
	return w.err
}

// Buffered returns the number of buffered bytes.
func (w *Writer) Buffered() int { return w.buffer.Buffered() }
